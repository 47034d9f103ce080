// CUDA launchers, compiled by a C compiler and run on whatever driver there is.
#include <dlfcn.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <regex>
#include <set>
#include <string>

#include "absl/strings/str_cat.h"
#include "compiler/codegen/cuda/nvrtc.h"
#include "compiler/module/cuda_binary.h"
#include "tests/compiler/launcher_program.h"

namespace regatta {
namespace {

// The part of the driver that a caller uses to keep tensors on the GPU.
constexpr char kDeviceCode[] = R"(
#include <dlfcn.h>

#define LAUNCH_END , NULL

static void *find(const char *name) {
  void *library = dlopen("libcuda.so.1", RTLD_NOW);
  void *found = library == NULL ? NULL : dlsym(library, name);
  if (found == NULL) exit(20);
  return found;
}

static void call(int error) {
  if (error != 0) {
    fprintf(stderr, "the driver's error %d\n", error);
    exit(21);
  }
}

static void begin(void) {}

static void *caller_context(void) {
  void *context = NULL;
  k_handle *handle;
  int (*retain)(void **, int), (*push)(void *);
  *(void **)&retain = find("cuDevicePrimaryCtxRetain");
  *(void **)&push = find("cuCtxPushCurrent_v2");
  call(retain(&context, 0));
  call(push(context));
  if (k_open(&handle, 1000, NULL) != 5 || handle != NULL) exit(22);
  return context;
}

static void *device_new(size_t bytes, const void *from) {
  unsigned long long memory = 0;
  int (*allocate)(unsigned long long *, size_t);
  int (*copy)(unsigned long long, const void *, size_t);
  *(void **)&allocate = find("cuMemAlloc_v2");
  *(void **)&copy = find("cuMemcpyHtoD_v2");
  call(allocate(&memory, bytes));
  if (from != NULL) call(copy(memory, from, bytes));
  return (void *)memory;
}

static void device_read(void *memory, void *to, size_t bytes) {
  int (*copy)(void *, unsigned long long, size_t);
  *(void **)&copy = find("cuMemcpyDtoH_v2");
  call(copy(to, (unsigned long long)memory, bytes));
}
)";

constexpr char kTarget[] = "cuda,mcpu=sm_80";
// No GPU, but a library of that name, which says so.
constexpr char kStub[] = "/usr/local/cuda/lib64/stubs/libcuda.so";
constexpr int kStubLibrary = 34;  // its error, CUDA_ERROR_STUB_LIBRARY

class CudaLauncherTest : public ::testing::Test {
 protected:
  void SetUp() override {
    if (const auto nvrtc = cuda::Nvrtc::Load(); !nvrtc.ok()) {
      GTEST_SKIP() << nvrtc.status().message();
    }
  }
};

bool HasDriver() {
  void* library = dlopen("libcuda.so.1", RTLD_NOW);
  if (library == nullptr) return false;
  dlclose(library);
  return true;
}

// Where `library` is found as the driver.
testing::Environment AsDriver(const testing::TempDir& dir,
                              const std::string& library) {
  std::filesystem::create_symlink(library, dir.path() + "/libcuda.so.1");
  return {absl::StrCat("LD_LIBRARY_PATH=", dir.path())};
}

TEST_F(CudaLauncherTest, DeliversCodeAndSource) {
  const auto files = LauncherOf({"matmul(m=16,n=16,k=16)"}, kTarget);
  EXPECT_EQ(FileWith(files, ".cubin").substr(0, 4),
            "\x7f"
            "ELF");
  EXPECT_THAT(FileWith(files, ".ptx"), ::testing::HasSubstr(".target sm_80"));
  EXPECT_THAT(FileWith(files, ".cu"), ::testing::HasSubstr("__global__"));
  const auto again = LauncherOf({"matmul(m=16,n=16,k=16)"}, kTarget);
  ASSERT_EQ(files.size(), again.size());
  for (size_t i = 0; i < files.size(); ++i) {
    EXPECT_EQ(files[i].bytes, again[i].bytes) << files[i].extension;
  }
}

TEST_F(CudaLauncherTest, EveryFunctionThatItLooksUpIsInTheDriver) {
  void* stub = dlopen(kStub, RTLD_LAZY | RTLD_LOCAL);
  if (stub == nullptr) GTEST_SKIP() << "no toolkit: " << dlerror();
  const std::string text =
      FileWith(LauncherOf({"matmul(m=16,n=16,k=16)"}, kTarget), ".c");
  const std::regex symbol("\"(cu[A-Z][A-Za-z0-9_]*)\"");
  std::set<std::string> found;
  for (std::sregex_iterator at(text.begin(), text.end(), symbol), end;
       at != end; ++at) {
    const std::string name = (*at)[1];
    EXPECT_NE(dlsym(stub, name.c_str()), nullptr) << name;
    found.insert(name);
  }
  EXPECT_EQ(found.size(), 16u);
}

TEST_F(CudaLauncherTest, WithoutAWorkingDriverOpeningSaysSo) {
  LauncherProgram program({"matmul(m=16,n=16,k=16)"}, kTarget, kDeviceCode, "");
  if (HasFatalFailure()) return;
  if (!HasDriver()) {
    const testing::ProcessResult result = program.Run();
    EXPECT_EQ(result.exit_code, 10 + 4) << result.err;
    EXPECT_THAT(result.err, ::testing::HasSubstr("open: 4: no CUDA driver"));
  }
  if (!std::filesystem::exists(kStub)) GTEST_SKIP() << "no toolkit: " << kStub;
  const testing::TempDir dir;
  const testing::ProcessResult result = program.Run(AsDriver(dir, kStub));
  EXPECT_EQ(result.exit_code, 9);
  EXPECT_THAT(result.err, ::testing::HasSubstr(
                              absl::StrCat("open: ", 1000 + kStubLibrary)));
}

// The simulated driver takes the way of a real one: it wants PTX where the
// cubin is of no use to it, a context for each thread, leave for much shared
// memory.
TEST_F(CudaLauncherTest, CallsEveryKindOfKernelFromC) {
  LauncherProgram program(
      {"matmul(m=33,n=48,k=20)",
       "conv2d(n=1,h=6,w=6,ci=4,co=8,kh=3,kw=3,pad=1)",
       "softmax(rows=5,cols=70)", "dense(m=8,n=16,k=12,dtype=f16)",
       "C[i,j] = sum(k) A[i,k] * B[k,j]; D[i] = sum(j) C[i,j] * C[i,j] + 0.5 "
       "where i=12, j=20, k=9"},
      kTarget, kDeviceCode, "");
  if (HasFatalFailure()) return;
  const testing::TempDir dir;
  const testing::ProcessResult result =
      program.Run(AsDriver(dir, REGATTA_CUDA_SIM_DRIVER));
  ASSERT_EQ(result.exit_code, 0) << result.err;
  program.ExpectRightResults();
}

TEST_F(CudaLauncherTest, CodeForLaterGpusIsRefused) {
  LauncherProgram program({"matmul(m=16,n=16,k=16)"}, "cuda,mcpu=sm_90",
                          kDeviceCode, "");
  if (HasFatalFailure()) return;
  const testing::TempDir dir;
  const testing::ProcessResult result =
      program.Run(AsDriver(dir, REGATTA_CUDA_SIM_DRIVER));
  EXPECT_EQ(result.exit_code, 10 + 6) << result.err;
  EXPECT_THAT(result.err, ::testing::HasSubstr("open: 6: the code does not"));
}

}  // namespace
}  // namespace regatta
