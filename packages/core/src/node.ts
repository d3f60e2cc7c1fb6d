export { systemClock, systemRandom, systemRecordIds } from "./node/system-ports.ts";
