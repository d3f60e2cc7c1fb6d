export { createDocumentSplitter } from "./document-units.ts";
export type { DocumentPart, DocumentSplitter, DocumentUnit, ListPlace } from "./document-units.ts";
export { detectForeignFormat, foreignFormats } from "./format-table.ts";
export type {
  ForeignFormat,
  ForeignReader,
  ForeignReaderOptions,
  ForeignUnit,
  FileLayout,
  FormatCompanion,
  StrayTitles,
  FormatMatch,
  FormatPlace,
  FormatSample,
  UnitPlace,
} from "./foreign-format.ts";
export type { DatabaseFields, DatabaseSession, FormatDatabase, RowQueries } from "./format-database.ts";
export type { FormatTree, TreeFiles, TreePlace, TreeSession } from "./format-tree.ts";
export { foreignFileFormat, mayLookFlat } from "./foreign-file.ts";
export { createHeadSampler } from "./head-sampler.ts";
export type { HeadSampler } from "./head-sampler.ts";
export { isUuid } from "./made-ids.ts";
export { createTextSplitter } from "./text-units.ts";
export type { TextCutter } from "./text-units.ts";
export type { ForeignFormatName, WritableFormatName } from "./names.ts";
export type { FormatLoss, FormatWriter, PlacedSession, WriteOptions, WrittenSession } from "./format-writer.ts";
