#include "absl/strings/str_cat.h"
#include "compiler/module/cuda_binary.h"
#include "device_agent/devices/cuda_provider.h"
#include "tests/device_agent/cuda_ptx.h"
#include "tests/device_agent/cuda_support.h"
#include "tests/device_agent/device_contract/device_kind.h"

namespace regatta::testing {
namespace {

std::string Loadable(std::string ptx) {
  return SerializeCudaBinary(
      {.arch = "", .cubin = "", .ptx = PtxHead() + std::move(ptx)});
}

// `then` of one thread alone.
std::string Only(int thread, const std::string& then) {
  return absl::StrCat("  setp.ne.s32 %p1, %r1, ", thread,
                      ";\n  @%p1 bra $END;\n", then, "$END:\n");
}

std::string BodyOf(Deed deed) {
  const std::string sum =
      "  ld.global.f32 %f1, [%rd11];\n  ld.global.f32 %f2, [%rd12];\n"
      "  add.f32 %f3, %f1, %f2;\n";
  const std::string add = sum + "  st.global.f32 [%rd13], %f3;\n";
  switch (deed) {
    case Deed::kNothing:
      return add;
    case Deed::kSkipsOdd:
      return sum +
             "  and.b32 %r11, %r1, 1;\n  setp.ne.s32 %p1, %r11, 0;\n"
             "  @%p1 bra $END;\n  st.global.f32 [%rd13], %f3;\n$END:\n";
    case Deed::kWritesBehind:
      return add +
             "  mov.u32 %r11, %nctaid.x;\n  mul.lo.s32 %r11, %r11, %r4;\n"
             "  mul.wide.s32 %rd20, %r11, 4;\n"
             "  add.s64 %rd21, %rd3, %rd20;\n" +
             Only(0, "  st.global.f32 [%rd21], %f1;\n");
    case Deed::kWritesBefore:
      return add + Only(0,
                        "  st.global.f32 [%rd3+-4], %f1;\n"
                        "  st.global.f32 [%rd3+-8], %f1;\n");
    case Deed::kWritesInput:
      return add + Only(7, "  st.global.f32 [%rd12], %f3;\n");
    case Deed::kNoCode:
      return "  abacus.f32 %f1, %f2;\n";
  }
  return "";
}

std::string Add(Deed deed) {
  return Loadable(PtxKernel("add", 3, BodyOf(deed)));
}

// In %r1 x, in %r11 y, in %r14 the columns; in %rd21 and %rd22 the addresses of
// element (y, x) of the two parameters.
constexpr char kPlace[] =
    "  mov.u32 %r11, %tid.y;\n  mov.u32 %r12, %ctaid.y;\n"
    "  mov.u32 %r13, %ntid.y;\n  mad.lo.s32 %r11, %r12, %r13, %r11;\n"
    "  mov.u32 %r14, %nctaid.x;\n  mul.lo.s32 %r14, %r14, %r4;\n"
    "  mad.lo.s32 %r15, %r11, %r14, %r1;\n  mul.wide.s32 %rd20, %r15, 4;\n"
    "  add.s64 %rd21, %rd1, %rd20;\n  add.s64 %rd22, %rd2, %rd20;\n";

std::string Rows() {
  return Loadable(
      PtxKernel("square", 2,
                absl::StrCat(kPlace,
                             "  ld.global.f32 %f1, [%rd21];\n"
                             "  mul.f32 %f1, %f1, %f1;\n"
                             "  st.global.f32 [%rd22], %f1;\n")) +
      PtxKernel("reverse_rows", 2,
                absl::StrCat(kPlace,
                             "  sub.s32 %r16, %r14, %r1;\n"
                             "  add.s32 %r16, %r16, -1;\n"
                             "  mad.lo.s32 %r16, %r11, %r14, %r16;\n"
                             "  mul.wide.s32 %rd23, %r16, 4;\n"
                             "  add.s64 %rd24, %rd1, %rd23;\n"
                             "  ld.global.f32 %f1, [%rd24];\n"
                             "  st.global.f32 [%rd22], %f1;\n")));
}

std::string Chain(int64_t steps) {
  return Loadable(PtxKernel(
      "chain", 3,
      absl::StrCat("  ld.global.f32 %f1, [%rd1];\n"
                   "  ld.global.f32 %f2, [%rd2+4];\n"
                   "  ld.global.f32 %f3, [%rd1+4];\n  mov.u32 %r11, ",
                   steps,
                   ";\n$LOOP:\n  fma.rn.f32 %f1, %f1, %f2, %f3;\n"
                   "  add.s32 %r11, %r11, -1;\n  setp.ne.s32 %p1, %r11, 0;\n"
                   "  @%p1 bra $LOOP;\n  st.global.f32 [%rd13], %f1;\n")));
}

}  // namespace

const DeviceKind& CudaKind() {
  static const DeviceKind& kind = *new DeviceKind{
      .name = "cuda",
      .first_device = FirstCudaDevice,
      .provider = CudaProvider,
      .cuda_driver = kCudaSim,
      .no_such_device = "97",
      .add = Add,
      .rows = Rows,
      .chain = Chain,
      .chain_steps = 5'000,
      .own_faults = {
          {"crash", v1::OUTCOME_CRASHED, "CUDA_ERROR_ILLEGAL_ADDRESS"},
          {"trap", v1::OUTCOME_CRASHED, "CUDA_ERROR_LAUNCH_FAILED"},
          {"hang", v1::OUTCOME_TIMED_OUT, "killed after 2.0 s"},
          {"much_shared", v1::OUTCOME_REFUSED, "bytes of shared memory"}}};
  return kind;
}

}  // namespace regatta::testing
