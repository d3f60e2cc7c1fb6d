export { createDocumentSplitter } from "./document-units.ts";
export type { ForeignFormat, ForeignReader, ForeignItem, FormatMatch } from "./foreign-format.ts";
export { detectForeignFormat, foreignFormats } from "./format-table.ts";
export type { FormatWriter } from "./format-writer.ts";
