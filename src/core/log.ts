/** Log lines as values: a constant message and fields. The library is silent unless it is given a logger. */
export type LogLevel = "debug" | "info" | "warn" | "error";
export type LogFields = Readonly<Record<string, string | number | boolean | null>>;
export type Logger = (level: LogLevel, message: string, fields?: LogFields) => void;
export const silentLog: Logger = () => undefined;
