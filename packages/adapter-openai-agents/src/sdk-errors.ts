import { ThroughlineError } from "@throughline/core";

type ErrorClass = new (message: string) => Error;

let loaded: Promise<ErrorClass | null> | null = null;

/** The SDK's class for what a caller did wrong or may handle; null where the SDK cannot be loaded. */
function userErrorClass(): Promise<ErrorClass | null> {
  loaded ??= import("@openai/agents-core").then(
    (sdk) => sdk.UserError as ErrorClass,
    () => null,
  );
  return loaded;
}

/** The SDK's own error with these words. */
export async function userError(message: string, cause?: unknown): Promise<Error> {
  const UserError = await userErrorClass();
  const error = UserError === null ? new Error(message) : new UserError(message);
  if (cause !== undefined) Object.defineProperty(error, "cause", { value: cause, configurable: true });
  return error;
}

/** Runs work; an error of ours comes as the cause of the SDK's. */
export async function withSdkErrors<Result>(work: () => Promise<Result>): Promise<Result> {
  try {
    return await work();
  } catch (error) {
    if (!ThroughlineError.isInstance(error)) throw error;
    throw await userError(`${error.message} (${error.code})`, error);
  }
}
