export {
  Dispatcher,
  type DispatchRequest,
  type DispatchTarget,
  dispatchOf,
  type Fetch,
  joinUrl,
  shownUrl,
} from "./dispatcher.js";
export { eventsOf, parseAnswer } from "./events.js";
export { requestHeaders, responseHeaders } from "./headers.js";
export { type TrackedBooking, type TrackOptions, trackResponse } from "./track.js";
