#include "client/cli/stop_signal.h"

#include <csignal>

namespace regatta::cli {
namespace {

std::atomic<bool> stop_requested = false;

void OnSignal(int signal) {
  if (stop_requested.exchange(true)) {
    std::signal(signal, SIG_DFL);
    std::raise(signal);
  }
}

}  // namespace

const std::atomic<bool>& StopRequested() {
  static const bool installed = [] {
    struct sigaction action {};
    action.sa_handler = OnSignal;
    sigaction(SIGINT, &action, nullptr);
    sigaction(SIGTERM, &action, nullptr);
    return true;
  }();
  (void)installed;
  return stop_requested;
}

}  // namespace regatta::cli
