// The `warmroute` entry under the condition `development`: a plugin that keeps a view beyond its call is told so.
import "./kernel/inlined.js";
import { guardViews } from "./plugins/worker-selection/guarded-views.js";

guardViews(true);

export * from "./exports.js";
