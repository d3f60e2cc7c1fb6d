type Message = Readonly<Record<string, unknown>>;

/** Is a run of equal messages, or one message that differs. Messages count from 1, those left out by the older call. */
export interface ComparedPart {
  readonly sign: "=" | "~" | "+" | "-";
  readonly from: number;
  readonly to: number;
  readonly before: Message | null;
  readonly after: Message | null;
}

/** Compares two requests: what both begin with, what both end with, and message by message what lies between. */
export function compareMessages(before: readonly Message[], after: readonly Message[]): readonly ComparedPart[] {
  const [old, now] = [before.map((each) => JSON.stringify(each)), after.map((each) => JSON.stringify(each))];
  const least = Math.min(old.length, now.length);
  let head = 0;
  while (head < least && old[head] === now[head]) head += 1;
  let tail = 0;
  while (tail < least - head && old.at(-1 - tail) === now.at(-1 - tail)) tail += 1;
  const parts: ComparedPart[] = [];
  const same = (from: number, to: number): void => {
    if (to >= from) parts.push({ sign: "=", from, to, before: null, after: null });
  };
  same(1, head);
  const [oldEnd, nowEnd] = [old.length - tail, now.length - tail];
  for (let at = head; at < Math.max(oldEnd, nowEnd); at++) {
    const [one, other] = [at < oldEnd ? (before[at] ?? null) : null, at < nowEnd ? (after[at] ?? null) : null];
    if (one !== null && other !== null && old[at] === now[at]) same(at + 1, at + 1);
    else {
      const sign = one === null ? "+" : other === null ? "-" : "~";
      parts.push({ sign, from: at + 1, to: at + 1, before: one, after: other });
    }
  }
  same(nowEnd + 1, now.length);
  return parts;
}
