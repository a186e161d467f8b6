// The queue's rules once more, as plainly as they can be said: one array, looked through from end to end at each step.
import type { PolicyClass } from "../../../src/plugins/policy/contract.js";

export interface Waiting {
  id: number;
  policyClass: PolicyClass;
  /** Names the slots: requests with equal names share a lane. */
  slots: readonly number[];
  strict: number;
  jump: number;
  ingressMs: number;
  sinceMs: number;
  due: number | undefined;
  raw: number;
  cached: number;
  cost: number;
  bypassed: number;
}

export class Oracle {
  waiting: Waiting[] = [];
  /** Those that were due when their turn came. */
  late: Waiting[] = [];
  readonly classes: readonly PolicyClass[];
  readonly loads: number[];
  readonly maxWaitMs: number;
  readonly batch: number;
  nowMs = 0;
  deficit = new Map<string, number>();
  cursor = 0;
  carry: PolicyClass | undefined;
  tiersTurn = new Set<string>();

  constructor(classes: readonly PolicyClass[], loads: number[], batch: number, maxWaitMs: number) {
    this.classes = classes;
    this.loads = loads;
    this.batch = batch;
    this.maxWaitMs = maxWaitMs;
  }

  isBusy({ prefillBusyThreshold = Infinity, prefillBusyThresholdFrac = Infinity }: PolicyClass, slot: number): boolean {
    return this.loads[slot]! > prefillBusyThreshold || this.loads[slot]! > prefillBusyThresholdFrac * this.batch;
  }

  mustWait(policyClass: PolicyClass, slots: readonly number[]): boolean {
    if (policyClass.prefillBusyThreshold === undefined && policyClass.prefillBusyThresholdFrac === undefined)
      return false;
    if (slots.length === 0) return false;
    const backlog = this.waiting.some((w) => w.policyClass === policyClass && shares(w.slots, slots));
    return backlog || slots.every((slot) => this.isBusy(policyClass, slot));
  }

  before(a: Waiting, b: Waiting): boolean {
    const key = (w: Waiting) => {
      const { queuePolicy } = w.policyClass;
      const jump = Math.max(0, w.jump);
      const seconds = w.ingressMs / 1000;
      const score =
        queuePolicy === "wspt" ? (1 + jump) / w.cost : queuePolicy === "lcfs" ? jump + seconds : jump - seconds;
      return [-w.strict, w.due ?? Infinity, -score, w.id];
    };
    const [p, q] = [key(a), key(b)];
    const at = p.findIndex((value, i) => value !== q[i]);
    return at >= 0 && p[at]! < q[at]!;
  }

  /** Those that may go now, of a class. */
  open(policyClass: PolicyClass): Waiting[] {
    const mine = this.waiting.filter((w) => w.policyClass === policyClass);
    const heads = mine.filter((w) => !mine.some((o) => sameLane(o, w) && this.before(o, w)));
    return mine.filter((w) => {
      if (w.slots.length === 0) return true;
      const head = heads.find((h) => sameLane(h, w))!;
      const passed = heads.filter((h) => h.bypassed >= 64 && this.before(h, head));
      return w.slots.some((s) => !this.isBusy(policyClass, s) && !passed.some((h) => h.slots.includes(s)));
    });
  }

  next(policyClass: PolicyClass): Waiting | undefined {
    const open = this.open(policyClass);
    const best = open.find((w) => !open.some((o) => this.before(o, w)));
    if (!best || this.tiersTurn.has(policyClass.name) || this.maxWaitMs === 0) return best;
    const overdue = open.filter((w) => w.strict < best.strict && this.nowMs - w.sinceMs >= this.maxWaitMs);
    return overdue.sort((a, b) => a.id - b.id)[0] ?? best;
  }

  /** The next to go, taken out. */
  pop(): Waiting | undefined {
    let chosen = this.choose();
    for (; chosen?.due !== undefined && chosen.due <= this.nowMs; chosen = this.choose()) {
      const late = chosen;
      this.waiting = this.waiting.filter((w) => w !== late);
      this.late.push(late);
    }
    if (!chosen) return undefined;
    const { policyClass } = chosen;
    const mine = this.waiting.filter((w) => w.policyClass === policyClass && w !== chosen);
    const heads = [...mine, chosen].filter((w) => ![...mine, chosen].some((o) => sameLane(o, w) && this.before(o, w)));
    const late = this.maxWaitMs > 0 && this.nowMs - chosen.sinceMs >= this.maxWaitMs;
    this.tiersTurn.delete(policyClass.name);
    for (const head of heads) {
      if (head === chosen || !this.before(head, chosen)) continue;
      if (head.strict > chosen.strict && late) this.tiersTurn.add(policyClass.name);
      else if (shares(head.slots, chosen.slots)) head.bypassed++;
    }
    this.waiting = this.waiting.filter((w) => w !== chosen);
    this.cursor = (this.classes.indexOf(policyClass) + 1) % this.classes.length;
    const left = mine.length === 0 ? 0 : this.deficit.get(policyClass.name)! - chosen.cost;
    this.deficit.set(policyClass.name, left);
    this.carry = left > 0 ? policyClass : undefined;
    return chosen;
  }

  choose(): Waiting | undefined {
    const has = (c: PolicyClass) => this.deficit.get(c.name) ?? 0;
    const kept = this.carry && this.next(this.carry);
    if (kept && kept.cost <= has(this.carry!)) return kept;
    const ring = [...this.classes.slice(this.cursor), ...this.classes.slice(0, this.cursor)];
    for (const c of ring) {
      if (!this.waiting.some((w) => w.policyClass === c)) this.deficit.set(c.name, 0);
      const head = this.next(c);
      if (!head) continue;
      if (head.cost > has(c)) this.deficit.set(c.name, has(c) + c.quantum);
      if (head.cost <= has(c)) return head;
    }
    const candidates = ring.filter((c) => this.next(c));
    const rounds = candidates.map((c) => Math.ceil((this.next(c)!.cost - has(c)) / c.quantum));
    for (const c of candidates) this.deficit.set(c.name, has(c) + Math.min(...rounds) * c.quantum);
    const first = candidates.find((c) => this.next(c)!.cost <= has(c));
    return first && this.next(first);
  }
}

const shares = (a: readonly number[], b: readonly number[]) => a.some((slot) => b.includes(slot));
const sameLane = (a: Waiting, b: Waiting) => a.strict === b.strict && String(a.slots) === String(b.slots);
