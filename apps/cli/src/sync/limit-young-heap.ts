import { PerformanceObserver } from "node:perf_hooks";
import { getHeapSpaceStatistics, setFlagsFromString } from "node:v8";

/** V8 grows it in powers of two, to 128 MB and more. An import is as fast with this size. */
const mostBytes = 16_000_000;

let isLimited = false;

/**
 * Stops the growth of V8's space for young objects at 16 MB. An import makes many short-lived objects, and V8 keeps the
 * space that it grew to for the life of the process. The size can be set at the start of a process only, so this ends
 * the growth instead.
 */
export function limitYoungHeap(): void {
  if (isLimited) return;
  isLimited = true;
  const observer = new PerformanceObserver(() => {
    const young = getHeapSpaceStatistics().find(({ space_name: name }) => name === "new_space");
    if (young !== undefined && young.space_size < mostBytes) return;
    setFlagsFromString("--semi-space-growth-factor=1");
    observer.disconnect();
  });
  observer.observe({ entryTypes: ["gc"] });
}
