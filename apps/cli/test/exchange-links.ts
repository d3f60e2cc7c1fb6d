// Exchanges two names for each other until a message stops it; then reports how often.
import { renameSync, rmSync } from "node:fs";
import process from "node:process";

type Names = readonly [one: string, other: string, aside: string];

/** A write may have made the name anew in the gap. */
function move(from: string, to: string): void {
  for (let time = 0; time < 1000; time++) {
    try {
      return renameSync(from, to);
    } catch {
      rmSync(to, { recursive: true, force: true });
    }
  }
}

function exchange([one, other, aside]: Names): void {
  move(one, aside);
  move(other, one);
  move(aside, other);
}

process.once("message", (pairs: readonly Names[]) => {
  let times = 0;
  let isDone = false;
  const round = (): void => {
    // An odd number, so that the names rest now one way and now the other.
    for (let count = 0; count < 11; count++) for (const pair of pairs) exchange(pair);
    times += 11;
    if (times === 11) process.send?.("begun");
    if (!isDone && process.connected) {
      setTimeout(round, 2);
      return;
    }
    process.send?.(times);
    process.disconnect?.();
  };
  process.on("message", () => (isDone = true));
  round();
});
