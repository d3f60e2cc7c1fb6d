import { fileOfLines, type ForeignFormat } from "../foreign-format.ts";
import { langgraphDatabase } from "./langgraph-database.ts";
import { createLanggraphReader } from "./read-langgraph.ts";

/** The format covers threads of LangGraph's SQLite checkpointer. */
export const langgraphFormat: ForeignFormat = {
  name: "langgraph",
  program: "LangGraph",
  layout: () => fileOfLines,
  places: [],
  database: langgraphDatabase,
  detect: () => null,
  createReader: createLanggraphReader,
};
