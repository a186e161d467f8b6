// Why a classification failed. Clients see the messages, so they are constant; what a plugin said is the cause.
import { WarmrouteError } from "../../core/errors.js";

export const pluginFailed = (cause: unknown) =>
  new WarmrouteError("request_classifier_failed", "the request classifier failed", { cause });

/** An answer that is refused. `why` becomes the cause, for the log, and says nothing of the request. */
export const refusedAnswer = (why: string) =>
  new WarmrouteError("invalid_classification_metadata", "the request classifier's answer was refused", {
    cause: new Error(why),
  });

export const lifecycleEnded = () =>
  new WarmrouteError("lifecycle_ended", "the request ended before its classification was done");

export const pastDue = () => new WarmrouteError("deadline_exceeded", "the request was due before it was queued");

export const timedOut = () => new WarmrouteError("classify_timeout", "the request classifier did not answer in time");

export const tooManyPending = () =>
  new WarmrouteError("classify_pending_limit", "too many requests wait for the request classifier");

export const shuttingDown = () => new WarmrouteError("shutting_down", "the router is closing");
