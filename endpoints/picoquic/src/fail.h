// How the program ends early: with an explanation on standard error and the exit code of the contract.
#pragma once

// Ends the program with 127: it cannot do what it is asked for.
[[noreturn, gnu::format(printf, 1, 2)]] void unsupported(const char *format, ...);
// Ends the program with 1.
[[noreturn, gnu::format(printf, 1, 2)]] void fail(const char *format, ...);
