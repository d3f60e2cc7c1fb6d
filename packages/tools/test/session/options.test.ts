import { describeWrongValues, type CheckedValues } from "@throughline/test-kit/options";
import { createMemoryStore } from "@throughline/store-memory";
import { createSessionTools } from "@throughline/tools";

/** Of each option a value of another type or out of range. */
const calls: readonly CheckedValues[] = [
  {
    name: "createSessionTools",
    needed: { store: createMemoryStore() },
    wrong: {
      store: [{}, 5, null],
      visibility: ["everything", 1],
      spawnLimits: [5, { maxDepth: "3" }, { maxChildren: -1 }, { idleMs: -1 }],
      sendPolicy: ["deny"],
      deliver: [{}],
      waitMs: [-1, "1s"],
      maxMessageLength: [0],
      maxHops: [-1, 1.5],
      maxHistoryBytes: [0],
      maxHistoryText: [0],
      clock: [{}],
      random: [{}],
    },
    call: (options) => createSessionTools(options),
  },
];

describeWrongValues(calls);
