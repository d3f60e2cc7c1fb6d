import { count, flag, kind, or, text, type Shape } from "./shape-checks.ts";

/** What `resume` and `secrets` print. */
export const ownerShapes: Readonly<Record<string, Shape>> = {
  resume: {
    ...kind,
    key: text,
    name: text,
    sessionId: text,
    program: or(text),
    path: or(text),
    cwd: or(text),
    isFolderThere: flag,
    isContinuedHere: flag,
    command: text,
  },
  secret: {
    ...kind,
    agentId: text,
    key: text,
    archiveId: or(text),
    sessionId: text,
    seq: or(count),
    id: or(text),
    field: or(text),
    rule: text,
    masked: text,
    sourcePath: or(text),
  },
};
