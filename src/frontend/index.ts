export { type JsonBody, readJsonBody } from "./body.js";
export { errorResponse, HttpError } from "./errors.js";
export { createFrontend, type FrontendOptions, HttpFrontend, openAiEdge } from "./frontend.js";
export { isObject, readChat, readCompletion } from "./prompt.js";
export { BytesTokenizer } from "./tokenizer.js";
