// Ctrl-C, SIGTERM and the end of the terminal as a flag.
#ifndef REGATTA_CLIENT_CLI_STOP_SIGNAL_H_
#define REGATTA_CLIENT_CLI_STOP_SIGNAL_H_

#include <atomic>

namespace regatta::cli {

// Set once SIGINT, SIGTERM or SIGHUP (unless ignored) arrives after the first
// call of this function; a second signal ends the process as usual.
const std::atomic<bool>& StopRequested();

}  // namespace regatta::cli

#endif  // REGATTA_CLIENT_CLI_STOP_SIGNAL_H_
