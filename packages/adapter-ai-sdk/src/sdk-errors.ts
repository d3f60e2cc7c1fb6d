import { frameworkErrors, loadedOnce } from "@throughline/foreign-formats/internal";

const sdkErrorClass = loadedOnce(async () => (await import("ai")).AISDKError);

/** Runs work; an error of ours comes as the cause of the SDK's. */
export const withSdkErrors: ReturnType<typeof frameworkErrors> = frameworkErrors(async (message, cause) => {
  const SdkError = await sdkErrorClass();
  return SdkError === null ? cause : new SdkError({ name: "AI_ThroughlineError", message, cause });
});
