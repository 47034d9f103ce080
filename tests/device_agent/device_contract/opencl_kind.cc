#include "absl/strings/str_cat.h"
#include "device_agent/devices/opencl_provider.h"
#include "tests/device_agent/device_contract/device_kind.h"
#include "tests/device_agent/opencl_support.h"

namespace regatta::testing {
namespace {

const char* BodyOf(Deed deed) {
  switch (deed) {
    case Deed::kNothing:
      return "c[i] = a[i] + b[i];";
    case Deed::kSkipsOdd:
      return "if (i % 2 == 0) c[i] = a[i] + b[i];";
    case Deed::kWritesBehind:
      return "c[i] = a[i] + b[i]; if (i == 0) c[get_global_size(0)] = 1;";
    case Deed::kWritesBefore:
      return "c[i] = a[i] + b[i]; if (i == 0) { c[-1] = 1; c[-2] = 1; }";
    case Deed::kWritesInput:
      return "c[i] = a[i] + b[i]; if (i == 7) ((__global float*)b)[7] = 1;";
    case Deed::kNoCode:
      return "c[i] = abacus;";
  }
  return "";
}

std::string Kernel(const std::string& name, const std::string& body) {
  return absl::StrCat("__kernel void ", name,
                      "(__global const float* a, __global const float* b,\n"
                      "    __global float* c) {\n"
                      "  const int i = get_global_id(0);\n  ",
                      body, "\n}\n");
}

std::string Add(Deed deed) { return Kernel("add", BodyOf(deed)); }

std::string Rows() {
  return R"(
__kernel void square(__global const float* a, __global float* w) {
  const size_t i = get_global_id(1) * get_global_size(0) + get_global_id(0);
  w[i] = a[i] * a[i];
}
__kernel void reverse_rows(__global const float* w, __global float* c) {
  const size_t x = get_global_id(0), y = get_global_id(1);
  const size_t width = get_global_size(0);
  c[y * width + x] = w[y * width + width - 1 - x];
}
)";
}

std::string Chain(int64_t steps) {
  return Kernel("chain",
                absl::StrCat("float x = a[0];\n  for (int k = 0; k < ", steps,
                             "; ++k) x = x * b[1] + a[1];\n"
                             "  c[i] = x;"));
}

}  // namespace

const DeviceKind& OpenClKind() {
  static const DeviceKind& kind = *new DeviceKind{
      .name = "opencl",
      .first_device = FirstOpenClDevice,
      .provider = OpenClProvider,
      .cuda_driver = "",
      .no_such_device = "97/3",
      .add = Add,
      .rows = Rows,
      .chain = Chain,
      .chain_steps = 200'000,
      .own_faults = {
          {"crash", v1::OUTCOME_CRASHED, "SIGSEGV at address 0x10, in call 1"},
          {"hang", v1::OUTCOME_TIMED_OUT, "in the first call"}}};
  return kind;
}

}  // namespace regatta::testing
