// The kinds of devices beside the board's processors, for suites that all of
// them pass: where one is found here, and kernels written by hand in its
// language.
#ifndef REGATTA_TESTS_DEVICE_AGENT_DEVICE_CONTRACT_DEVICE_KIND_H_
#define REGATTA_TESTS_DEVICE_AGENT_DEVICE_CONTRACT_DEVICE_KIND_H_

#include <cstdint>
#include <ostream>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "device_agent/devices/device_provider.h"
#include "regatta/v1/worker.pb.h"

namespace regatta::testing {

// What the kernel "add" does beside c[i] = a[i] + b[i] for every thread i.
enum class Deed {
  kNothing,
  kSkipsOdd,      // writes c[i] for even i only
  kWritesBehind,  // thread 0 writes the element behind c
  kWritesBefore,  // thread 0 writes the two elements before c
  kWritesInput,   // thread 7 writes b[7]
  kNoCode,        // has the word "abacus" in a place where none can be
};

// What a trial of a planted module ends as, and what its detail says.
struct PlantedFault {
  std::string name;
  v1::Outcome outcome;
  std::string detail;
};

struct DeviceKind {
  std::string name;  // first word of its targets
  // The first device of this process. Unavailable: what to install, for skips.
  absl::StatusOr<v1::BoardDevice> (*first_device)() = nullptr;
  // What an agent finds its devices with.
  const DeviceProvider& (*provider)() = nullptr;
  std::string cuda_driver;  // Board::cuda_driver
  std::string no_such_device;

  // Loadables of modules.
  std::string (*add)(Deed) = nullptr;
  // Kernels over columns x and rows y: "square", w[y][x] = a[y][x]^2, and
  // "reverse_rows", c[y][x] = w[y][columns - 1 - x].
  std::string (*rows)() = nullptr;
  // Kernel "chain": c[i] = a[0] after as many dependent steps of
  // x = x * b[1] + a[1].
  std::string (*chain)(int64_t steps) = nullptr;
  int64_t chain_steps = 0;  // that take many times as long as a launch
  // Of those of planted_device.h that end in another way on each kind, or that
  // only this kind has.
  std::vector<PlantedFault> own_faults;

  friend void PrintTo(const DeviceKind& kind, std::ostream* out) {
    *out << kind.name;
  }
};

// device_kind_list.cc: add a kind there.
const std::vector<DeviceKind>& DeviceKinds();

const DeviceKind& OpenClKind();
// Over the simulated driver.
const DeviceKind& CudaKind();

}  // namespace regatta::testing

#endif  // REGATTA_TESTS_DEVICE_AGENT_DEVICE_CONTRACT_DEVICE_KIND_H_
