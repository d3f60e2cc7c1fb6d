import { frameworkErrors, loadedOnce } from "@throughline/foreign-formats/internal";

/** The SDK's class for what a caller did wrong or may handle. */
const userErrorClass = loadedOnce(async () => (await import("@openai/agents-core")).UserError);

/** The SDK's own error with these words. */
export async function userError(message: string, cause?: unknown): Promise<Error> {
  const UserError = await userErrorClass();
  const error = UserError === null ? new Error(message) : new UserError(message);
  if (cause !== undefined) Object.defineProperty(error, "cause", { value: cause, configurable: true });
  return error;
}

/** Runs work; an error of ours comes as the cause of the SDK's. */
export const withSdkErrors: ReturnType<typeof frameworkErrors> = frameworkErrors(userError);
