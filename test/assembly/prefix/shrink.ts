// Makes a failing stream small, so that its failure can be read.
import { Difference, type Operation, replay, type Step, type Subject } from "./stream.js";

/** As few of the items, in their order, as still fail: ever smaller chunks are dropped. */
function shrinkList<T>(items: readonly T[], fails: (fewer: readonly T[]) => boolean): readonly T[] {
  let kept = items;
  for (let chunk = kept.length; chunk >= 1; chunk = Math.floor(chunk / 2)) {
    for (let end = kept.length; end > 0; end -= chunk) {
      const fewer = [...kept.slice(0, Math.max(0, end - chunk)), ...kept.slice(end)];
      if (fails(fewer)) kept = fewer;
    }
  }
  return kept;
}

/** The operation with only those of its blocks that are at `places`. */
function only(operation: Operation, places: readonly number[]): Operation {
  const at = (values: readonly bigint[]) => places.map((i) => values[i] as bigint);
  if (operation.kind === "store") return { ...operation, names: at(operation.names), locals: at(operation.locals) };
  if (operation.kind === "remove") return { ...operation, names: at(operation.names) };
  return operation;
}

const blocksOf = (operation: Operation): number[] => ("names" in operation ? [...operation.names.keys()] : []);

/** A small stream that still fails: no operation, query or block of it can be dropped alone. */
export function shrink(make: () => Subject, ownNames: boolean, stream: readonly Step[]): readonly Step[] {
  const failure = (steps: readonly Step[]): Difference | undefined => {
    try {
      replay(make(), ownNames, steps);
      return undefined;
    } catch (error) {
      if (error instanceof Difference) return error;
      throw error;
    }
  };
  const fails = (steps: readonly Step[]) => failure(steps) !== undefined;
  const first = failure(stream);
  if (!first) throw new Error("the stream does not fail");
  let kept: readonly Step[] = stream.slice(0, first.at + 1);
  // Queries change nothing, or should not: those of the last operation are enough, as a rule.
  const quiet = kept.map((step, i) => (i === first.at ? step : { ...step, queries: [] }));
  if (fails(quiet)) kept = quiet;
  for (let size = Number.POSITIVE_INFINITY; kept.length < size; ) {
    size = kept.length;
    kept = shrinkList(kept, fails);
    for (let i = 0; i < kept.length; i++) {
      const put = (step: Step) => kept.map((other, j) => (j === i ? step : other));
      const step = kept[i] as Step;
      const queries = shrinkList(step.queries, (fewer) => fails(put({ ...step, queries: fewer })));
      const places = shrinkList(blocksOf(step.operation), (fewer) =>
        fails(put({ operation: only(step.operation, fewer), queries })),
      );
      kept = put({ operation: only(step.operation, places), queries });
    }
  }
  return kept;
}

function line(operation: Operation): string {
  const { kind, rank } = operation;
  if (kind === "store") {
    const blocks = operation.names.map((name, i) => `${name}=${operation.locals[i]}`).join(" ");
    return `rank ${rank} store, tier ${operation.tier}, after ${operation.parent ?? "the root"}: ${blocks}`;
  }
  if (kind === "remove") return `rank ${rank} remove, tier ${operation.tier}: ${operation.names.join(" ")}`;
  return `rank ${rank} ${kind}`;
}

/** A stream to read: blocks are `name=local hash`. */
export function describeStream(stream: readonly Step[]): string {
  return stream
    .flatMap(({ operation, queries }) => [line(operation), ...queries.map((chain) => `  ask ${chain.join(" ")}`)])
    .join("\n");
}
