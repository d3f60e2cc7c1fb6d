export type { FileStore } from "./file-store.ts";
export { createS3FileStore } from "./s3/s3-file-store.ts";
export type { S3FileStoreOptions } from "./s3/s3-file-store.ts";
export { withFileStore } from "./with-file-store.ts";
