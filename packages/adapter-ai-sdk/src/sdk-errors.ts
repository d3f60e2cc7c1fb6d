import { frameworkErrors, loadedOnce } from "@throughline/foreign-formats/internal";

const sdkErrorClass = loadedOnce(async () => (await import("ai")).AISDKError);

/**
 * Runs work and reports a Throughline error as the cause of the SDK's error, because programs catch the SDK's class.
 */
export const withSdkErrors: ReturnType<typeof frameworkErrors> = frameworkErrors(async (message, cause) => {
  const SdkError = await sdkErrorClass();
  return SdkError === null ? cause : new SdkError({ name: "AI_ThroughlineError", message, cause });
});
