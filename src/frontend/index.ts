export { type JsonBody, readJsonBody } from "./body.js";
export { errorResponse, HttpError } from "./errors.js";
export { createFrontend, type FrontendOptions, HttpFrontend } from "./frontend.js";
export { type ChatMessage, isObject, type Prompt, readChat, readCompletion } from "./prompt.js";
export { BytesTokenizer, type Tokenizer } from "./tokenizer.js";
