// The thread that reads a large file whole. Started by `checkPages`; not to be imported.
import { parentPort, workerData } from "node:worker_threads";
import { checkNow, type CheckAnswer, type CheckOrder } from "./check-pages.ts";
import { defaultDriver } from "./connection.ts";
import { nativeCode } from "./sqlite-errors.ts";

function answer(order: CheckOrder): CheckAnswer {
  try {
    return { wrong: checkNow(order, defaultDriver) };
  } catch (error) {
    return { failure: { code: nativeCode(error), message: String(error) } };
  }
}

parentPort?.postMessage(answer(workerData as CheckOrder));
