export { type JsonBody, readJsonBody } from "./body.js";
export { errorResponse, HttpError } from "./errors.js";
export { createFrontend, HttpFrontend, openAiEdge } from "./frontend.js";
export type { FrontendOptions, ModelOptions } from "./options.js";
export { isObject, readChat, readCompletion } from "./prompt.js";
export { BytesTokenizer } from "./tokenizer.js";
