#include "tests/device_agent/cuda_ptx.h"

#include "absl/strings/str_cat.h"

namespace regatta::testing {

std::string PtxHead() {
  return ".version 7.0\n.target sm_75\n.address_size 64\n";
}

std::string PtxKernel(const std::string& entry, int pointers,
                      const std::string& body) {
  std::string ptx = absl::StrCat("\n.visible .entry ", entry, "(");
  for (int i = 1; i <= pointers; ++i) {
    absl::StrAppend(&ptx, i == 1 ? "" : ", ", ".param .u64 ", entry, "_p", i);
  }
  absl::StrAppend(&ptx, ")\n{\n  .reg .pred %p<5>;\n  .reg .f32 %f<10>;\n",
                  "  .reg .b32 %r<20>;\n  .reg .b64 %rd<30>;\n",
                  "  mov.u32 %r2, %tid.x;\n  mov.u32 %r3, %ctaid.x;\n",
                  "  mov.u32 %r4, %ntid.x;\n",
                  "  mad.lo.s32 %r1, %r3, %r4, %r2;\n",
                  "  mul.wide.s32 %rd10, %r1, 4;\n");
  for (int i = 1; i <= pointers; ++i) {
    absl::StrAppend(&ptx, "  ld.param.u64 %rd", i, ", [", entry, "_p", i,
                    "];\n  cvta.to.global.u64 %rd", i, ", %rd", i,
                    ";\n  add.s64 %rd", 10 + i, ", %rd", i, ", %rd10;\n");
  }
  return absl::StrCat(ptx, body, "  ret;\n}\n");
}

std::string AddPtx(const std::string& more) {
  return PtxHead() + PtxKernel("add", 3,
                               "  ld.global.f32 %f1, [%rd11];\n"
                               "  ld.global.f32 %f2, [%rd12];\n"
                               "  add.f32 %f3, %f1, %f2;\n"
                               "  st.global.f32 [%rd13], %f3;\n" +
                                   more);
}

}  // namespace regatta::testing
