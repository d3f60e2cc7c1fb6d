import { describeWrongValues, type CheckedValues } from "@throughline/test-kit/options";
import { createMemorySearchTool, createWorkspaceTools } from "@throughline/tools";

/** Of each option a value of another type or out of range. */
const calls: readonly CheckedValues[] = [
  {
    name: "createWorkspaceTools",
    needed: { root: "." },
    wrong: {
      root: ["", 5, null],
      readOnly: ["yes", 1],
      deny: ["secrets", [5], [""]],
      denyFiles: [{}, [null]],
      allow: [".git", [5]],
      writable: ["memory", [5]],
      maxReadBytes: [0, "1", 1.5],
      maxWriteBytes: [-1],
      maxListEntries: [0],
      maxListDepth: [0, "2"],
      random: [{}, 5],
    },
    call: (options) => createWorkspaceTools(options),
  },
  {
    name: "createMemorySearchTool",
    needed: { root: "." },
    wrong: {
      root: ["", 5],
      places: ["memory", [5]],
      deny: ["x"],
      denyFiles: ["x"],
      allow: ["x"],
      store: [{}, 5],
      sessions: ["all", true],
      scorer: [{}],
      fileLimits: [5, { files: -1 }],
      transcriptLimits: [5, { records: "all" }],
    },
    call: (options) => createMemorySearchTool(options),
  },
];

describeWrongValues(calls);
