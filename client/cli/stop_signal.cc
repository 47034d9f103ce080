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
    // Under nohup a closed terminal is no reason to stop.
    struct sigaction before {};
    sigaction(SIGHUP, nullptr, &before);
    if (before.sa_handler != SIG_IGN) sigaction(SIGHUP, &action, nullptr);
    return true;
  }();
  (void)installed;
  return stop_requested;
}

}  // namespace regatta::cli
