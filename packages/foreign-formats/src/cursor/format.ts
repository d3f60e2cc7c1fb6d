import { fileOfLines, type ForeignFormat } from "../foreign-format.ts";
import { createListReader } from "../message-list.ts";
import { cursorDatabase } from "./cursor-database.ts";
import { CursorBubbles } from "./cursor-bubbles.ts";

/** The format covers conversations in the global store of Cursor. */
export const cursorFormat: ForeignFormat = {
  name: "cursor",
  program: "Cursor",
  layout: () => fileOfLines,
  // The store also holds keys and tokens, so it is read only when a person names it.
  places: [],
  askedPlaces: [".config", "Library/Application Support", "AppData/Roaming"].map((home) => ({
    variables: [],
    home,
    files: [["Cursor", "User", "globalStorage", "state.vscdb"]],
  })),
  database: cursorDatabase,
  detect: () => null,
  createReader: (options) => createListReader(new CursorBubbles(), options),
};
