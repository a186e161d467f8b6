import { kernelBase64 } from "./generated/bytes.js";
import { offerInlinedBytes } from "./module.js";

offerInlinedBytes(() => Uint8Array.from(atob(kernelBase64), (c) => c.charCodeAt(0)));
