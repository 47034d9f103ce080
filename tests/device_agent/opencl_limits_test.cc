// What sub-groups and images a device has, asked of drivers that say one thing
// or the other: functions in place of a driver.
#include "device_agent/run/opencl_limits.h"

#include <algorithm>
#include <cstring>
#include <map>

#include "gtest/gtest.h"

namespace regatta::opencl {
namespace {

// What the driver says. Its functions have no state but this.
struct Answers {
  std::map<uint32_t, uint64_t> device;  // by question
  std::vector<uint32_t> formats;        // of RGBA images
  bool builds = true;
  size_t subgroup = 0;  // 0: an error
  size_t multiple = 0;
  int made = 0, released = 0;
};
Answers& TheAnswers() {
  static Answers answers;
  return answers;
}

template <typename Object>
Object Make(int32_t* error) {
  ++TheAnswers().made;
  *error = kSuccess;
  return reinterpret_cast<Object>(&TheAnswers());
}
template <typename Object>
int32_t Release(Object) {
  ++TheAnswers().released;
  return kSuccess;
}

Api FakeApi() {
  Api api = {};
  api.GetDeviceInfo = [](Device, uint32_t question, size_t bytes, void* value,
                         size_t*) {
    const auto found = TheAnswers().device.find(question);
    if (found == TheAnswers().device.end()) return int32_t{-30};
    std::memcpy(value, &found->second, bytes);
    return kSuccess;
  };
  api.CreateContext = [](const intptr_t*, uint32_t, const Device*,
                         void (*)(const char*, const void*, size_t, void*),
                         void*,
                         int32_t* error) { return Make<Context>(error); };
  api.ReleaseContext = Release<Context>;
  api.CreateProgramWithSource = [](Context, uint32_t, const char**,
                                   const size_t*, int32_t* error) {
    return Make<Program>(error);
  };
  api.ReleaseProgram = Release<Program>;
  api.BuildProgram = [](Program, uint32_t, const Device*, const char*,
                        void (*)(Program, void*), void*) {
    return TheAnswers().builds ? kSuccess : kBuildProgramFailure;
  };
  api.CreateKernel = [](Program, const char*, int32_t* error) {
    return Make<Kernel>(error);
  };
  api.ReleaseKernel = Release<Kernel>;
  api.GetKernelWorkGroupInfo = [](Kernel, Device, uint32_t question, size_t,
                                  void* value, size_t*) {
    EXPECT_EQ(question, kKernelPreferredWorkGroupSizeMultiple);
    std::memcpy(value, &TheAnswers().multiple, sizeof(size_t));
    return kSuccess;
  };
  api.GetSupportedImageFormats = [](Context, uint64_t, uint32_t kind,
                                    uint32_t room, ImageFormat* formats,
                                    uint32_t* count) {
    EXPECT_EQ(kind, kMemObjectImage2d);
    const std::vector<uint32_t>& types = TheAnswers().formats;
    if (count != nullptr) *count = static_cast<uint32_t>(types.size());
    for (size_t i = 0; i < std::min<size_t>(room, types.size()); ++i) {
      formats[i] = {kRgba, types[i]};
    }
    return kSuccess;
  };
  api.GetKernelSubGroupInfo = [](Kernel, Device, uint32_t question, size_t,
                                 const void* group, size_t, void* value,
                                 size_t*) {
    EXPECT_EQ(question, kKernelMaxSubGroupSizeForNdRange);
    EXPECT_EQ(*static_cast<const size_t*>(group), 64u);
    std::memcpy(value, &TheAnswers().subgroup, sizeof(size_t));
    return TheAnswers().subgroup > 0 ? kSuccess : int32_t{-30};
  };
  return api;
}

class OpenClLimits : public ::testing::Test {
 protected:
  OpenClLimits() : api_(FakeApi()), say_(TheAnswers()) { say_ = Answers(); }
  ~OpenClLimits() override { EXPECT_EQ(say_.made, say_.released); }
  int32_t Subgroup(const std::vector<std::string>& extensions) {
    return SubgroupSize(api_, nullptr, extensions);
  }
  Api api_;
  Answers& say_;
};

TEST_F(OpenClLimits, VendorsHaveQuestionsOfTheirOwn) {
  say_.device = {{kDeviceWarpSizeNv, 32}, {kDeviceWavefrontWidthAmd, 64}};
  EXPECT_EQ(Subgroup({"cl_khr_fp64", "cl_nv_device_attribute_query"}), 32);
  EXPECT_EQ(Subgroup({"cl_amd_device_attribute_query"}), 64);
  EXPECT_EQ(Subgroup({"cl_khr_fp16"}), 0);
  EXPECT_EQ(say_.made, 0);
}

TEST_F(OpenClLimits, AKernelIsToldItsSubgroup) {
  say_.subgroup = 16;
  say_.multiple = 8;
  EXPECT_EQ(Subgroup({"cl_khr_subgroups"}), 16);
  say_.subgroup = 0;
  EXPECT_EQ(Subgroup({"cl_intel_subgroups"}), 8);
  api_.GetKernelSubGroupInfo = nullptr;  // a loader of OpenCL 2.0
  EXPECT_EQ(Subgroup({"cl_qcom_subgroup_shuffle"}), 8);
  EXPECT_GT(say_.made, 0);
}

TEST_F(OpenClLimits, ADriverThatBuildsNothingSaysNothing) {
  say_.builds = false;
  say_.subgroup = 16;
  EXPECT_EQ(Subgroup({"cl_khr_subgroups"}), 0);
}

TEST_F(OpenClLimits, ImagesNeedBothFormats) {
  say_.device = {{kDeviceImageSupport, 1},
                 {kDeviceImage2dMaxWidth, 16384},
                 {kDeviceImage2dMaxHeight, uint64_t{1} << 40}};
  say_.formats = {kFloat};
  EXPECT_EQ(ImageLimitsOf(api_, nullptr).width, 0);
  say_.formats = {kHalfFloat, kFloat};
  EXPECT_EQ(ImageLimitsOf(api_, nullptr).width, 16384);
  EXPECT_EQ(ImageLimitsOf(api_, nullptr).height, 1 << 20);
  say_.device[kDeviceImageSupport] = 0;
  EXPECT_EQ(ImageLimitsOf(api_, nullptr).width, 0);
}

}  // namespace
}  // namespace regatta::opencl
