// Gives every request a time by which it must have left the queue: short prompts soon, long ones later.
import { z } from "zod";

const parameters = z.strictObject({
  base_ms: z.number().positive().default(2_000),
  ms_per_1000_tokens: z.number().min(0).default(100),
});

export function register(registry) {
  registry.registerRequestClassifier("example-deadline", (given) => {
    const { base_ms: base, ms_per_1000_tokens: slope } = given.parse(parameters);
    return () => ({
      classify: (request) => {
        const patience = base + (slope * request.inputTokens) / 1000;
        return request.setDueAtMs(request.ingressAtMs + patience);
      },
    });
  });
}
