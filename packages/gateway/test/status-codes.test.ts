import { errorCodes } from "@throughline/core/internal";
import { describe, expect, it } from "vitest";
import { statusOf } from "../src/http/status-of.ts";

describe("the status of an error", () => {
  it("is 500 for these codes only", () => {
    const codes = Object.keys(errorCodes).filter((code) => statusOf(code as keyof typeof errorCodes) === 500);
    expect(codes.toSorted()).toMatchInlineSnapshot(`
      [
        "ABORTED",
        "ADDRESS_UNAVAILABLE",
        "CODEC_FAILED",
        "CONFIG_INVALID",
        "EMBEDDING_FAILED",
        "EMBEDDING_INVALID",
        "EXPORT_EXISTS",
        "FILE_UNREADABLE",
        "FORMAT_UNKNOWN",
        "INSTALLATION_DAMAGED",
        "INTERNAL",
        "KEYRING_DAMAGED",
        "KEYRING_EXISTS",
        "KEYRING_IO",
        "KEYRING_NOT_FOUND",
        "KEY_DESTROYED",
        "KEY_MISSING",
        "MAIN_KEY_WRONG",
        "MEMORY_SHORT",
        "MODEL_KEY_MISSING",
        "MODEL_SDK_MISSING",
        "OUTPUT_INVALID",
        "PATH_UNSAFE",
        "PAYLOAD_ALTERED",
        "RUNTIME_UNSUPPORTED",
        "SERVER_RUNNING",
        "SESSION_CLOSED",
        "SESSION_REPLACED",
        "SESSION_SHARED",
        "SOURCE_CHANGED",
        "SPAWN_REFUSED",
        "STORE_CORRUPT",
        "STORE_FOREIGN",
        "STORE_IO",
        "STORE_NOT_FOUND",
        "STORE_UNSUPPORTED",
        "STORE_URL_INVALID",
        "STORE_VERSION_UNSUPPORTED",
        "USAGE",
      ]
    `);
  });
});
