// SIGTERM and SIGINT of a daemon: blocked in every thread, and taken by the one
// that waits for them.
//
// Thread-safe.
#ifndef REGATTA_BASE_STOP_SIGNALS_H_
#define REGATTA_BASE_STOP_SIGNALS_H_

#include <signal.h>

#include <string>

namespace regatta {

sigset_t StopSignals();
// REQUIRES: the process has this thread only; those to come inherit it.
void BlockStopSignals();
// Waits for one and takes it: "SIGTERM". REQUIRES: they are blocked.
std::string AwaitStopSignal();
// Whether one waits to be taken.
bool StopAsked();

}  // namespace regatta

#endif  // REGATTA_BASE_STOP_SIGNALS_H_
