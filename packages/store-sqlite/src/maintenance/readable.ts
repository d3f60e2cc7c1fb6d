import { hasErrorCode } from "@throughline/core";
import { isDamage } from "../sqlite-errors.ts";

/** Returns the result, or undefined where the file is damaged. */
export async function readable<Value>(read: () => Promise<Value>): Promise<Value | undefined> {
  try {
    return await read();
  } catch (error) {
    if (isDamage(error) || hasErrorCode(error, "STORE_CORRUPT", "CODEC_FAILED")) return undefined;
    throw error;
  }
}
