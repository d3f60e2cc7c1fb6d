// What the packages of Throughline share with each other. It may change in any release and is no part of the public interface.
export { readFailure } from "./connection.ts";
