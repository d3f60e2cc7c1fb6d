import type { SettingFragment } from "@throughline/core/internal";

const text = { type: "text", minLength: 1 } as const;

export const filesSettings: SettingFragment = {
  area: "files",
  fields: [
    {
      key: "bucket",
      description:
        "Bucket of S3 or a service with its API for the bytes of session files; null: they are in the store.",
      kind: text,
      default: null,
    },
    { key: "region", description: "Region of the bucket.", kind: text, default: "us-east-1" },
    {
      key: "endpoint",
      description: "Address of the service, such as https://ACCOUNT.r2.cloudflarestorage.com; null: AWS in the region.",
      kind: text,
      default: null,
    },
    {
      key: "pathStyle",
      description: "Whether the bucket is in the path of requests and not in the host; null: true with an endpoint.",
      kind: { type: "boolean" },
      default: null,
    },
    {
      key: "prefix",
      description: "How the name of every object begins. Two stores never share a bucket and a prefix.",
      kind: { type: "text", minLength: 0 },
      default: "",
    },
    {
      key: "store",
      description:
        "URL of the store whose files are in the bucket; null: the configured one. A store that --store names has none unless it is this one.",
      kind: text,
      default: null,
    },
    {
      key: "accessKeyIdEnv",
      description: "The variable with the id of the access key.",
      kind: text,
      default: "AWS_ACCESS_KEY_ID",
    },
    {
      key: "secretAccessKeyEnv",
      description: "The variable with the secret of the access key.",
      kind: text,
      default: "AWS_SECRET_ACCESS_KEY",
    },
    {
      key: "sessionTokenEnv",
      description: "The variable with the token of temporary keys; it may be unset.",
      kind: text,
      default: "AWS_SESSION_TOKEN",
    },
  ],
};
