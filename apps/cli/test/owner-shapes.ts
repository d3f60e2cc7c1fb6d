import { flag, kind, or, text, type Shape } from "./shape-checks.ts";

/** What `resume` prints. */
export const ownerShapes: Readonly<Record<string, Shape>> = {
  resume: {
    ...kind,
    key: text,
    sessionId: text,
    program: or(text),
    path: or(text),
    cwd: or(text),
    isFolderThere: flag,
    isContinuedHere: flag,
    command: text,
  },
};
