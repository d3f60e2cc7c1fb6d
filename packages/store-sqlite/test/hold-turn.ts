// A thread that is at it alone, from when it says so until a while after the other one has said that it comes.
import { workerData } from "node:worker_threads";
import { inOneThread } from "@throughline/core/internal/node";

const { cells } = workerData as { readonly cells: Int32Array };
inOneThread(() => {
  Atomics.store(cells, 0, 1);
  Atomics.notify(cells, 0);
  Atomics.wait(cells, 1, 0);
  Atomics.wait(cells, 2, 0, 100);
  Atomics.store(cells, 2, 1);
});
