import { frameworkErrors, loadedOnce } from "@throughline/foreign-formats/internal";

/** The SDK uses this class for errors that the caller caused or can handle. */
const userErrorClass = loadedOnce(async () => (await import("@openai/agents-core")).UserError);

/** Creates the SDK's error with this message; a plain Error when the SDK is not installed. */
export async function userError(message: string, cause?: unknown): Promise<Error> {
  const UserError = await userErrorClass();
  const error = UserError === null ? new Error(message) : new UserError(message);
  if (cause !== undefined) Object.defineProperty(error, "cause", { value: cause, configurable: true });
  return error;
}

/**
 * Runs work and reports a Throughline error as the cause of the SDK's error, because programs catch the SDK's class.
 */
export const withSdkErrors: ReturnType<typeof frameworkErrors> = frameworkErrors(userError);
