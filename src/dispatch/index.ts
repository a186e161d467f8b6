export { Dispatcher, type DispatchRequest, type DispatchTarget, type Fetch, joinUrl, shownUrl } from "./dispatcher.js";
export { requestHeaders, responseHeaders } from "./headers.js";
export { type TrackedBooking, trackResponse } from "./track.js";
