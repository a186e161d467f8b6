// A few requests of a session at a time: the next one finds the cache that the ones before it have filled.
import { z } from "zod";

const parameters = z.strictObject({ max_parallel: z.number().int().min(1).default(1) });

export function register(registry) {
  registry.registerRequestClassifier("example-session-gate", (given) => {
    const { max_parallel: room } = given.parse(parameters);
    return () => {
      const sessions = new Map(); // session → { running, waiting }
      const sessionOf = new Map(); // request id → session
      const leave = (requestId) => {
        const session = sessionOf.get(requestId);
        if (session === undefined) return;
        sessionOf.delete(requestId);
        const gate = sessions.get(session);
        gate.running--;
        gate.waiting.shift()?.();
        if (gate.running === 0 && gate.waiting.length === 0) sessions.delete(session);
      };
      return {
        classify(request, signal) {
          const session = request.sessionContext?.sessionId;
          if (session === undefined || request.requestId === undefined) return request;
          const gate = sessions.get(session) ?? { running: 0, waiting: [] };
          sessions.set(session, gate);
          const enter = () => {
            gate.running++;
            sessionOf.set(request.requestId, session);
            return request;
          };
          if (gate.running < room) return enter();
          return new Promise((resolve, reject) => {
            const turn = () => resolve(enter());
            gate.waiting.push(turn);
            signal.addEventListener("abort", () => {
              const at = gate.waiting.indexOf(turn);
              if (at >= 0) gate.waiting.splice(at, 1);
              reject(signal.reason);
            });
          });
        },
        onEvent(event) {
          if (event.type === "completed" || event.type === "aborted") leave(event.requestId);
        },
      };
    };
  });
}
