// What the agent's environment and --exec-prefix mean to its workers.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>
#include <unistd.h>

#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "device_agent/measure/build_client.h"
#include "device_agent/measure/driver_question.h"
#include "device_agent/spawner/spawner_client.h"

namespace regatta {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::Contains;
using ::testing::EndsWith;
using ::testing::HasSubstr;

// Sets a variable for as long as it lives.
class Variable {
 public:
  Variable(const char* name, const std::string& value) : name_(name) {
    if (const char* old = getenv(name)) old_ = old;
    setenv(name, value.c_str(), 1);
  }
  ~Variable() {
    if (old_) {
      setenv(name_, old_->c_str(), 1);
    } else {
      unsetenv(name_);
    }
  }

 private:
  const char* name_;
  std::optional<std::string> old_;
};

// A toolkit's folder with an NVRTC that says 12.4, which every user may read.
class Toolkit {
 public:
  Toolkit() {
    std::string pattern = ::testing::TempDir() + "toolkit-XXXXXX";
    path_ = mkdtemp(pattern.data());
    fs::create_directories(path_ + "/lib64");
    fs::copy_file(REGATTA_FAKE_NVRTC, path_ + "/lib64/libnvrtc.so.12");
    for (const std::string& folder : {path_, path_ + "/lib64"}) {
      fs::permissions(folder, fs::perms(0755));
    }
  }
  ~Toolkit() { fs::remove_all(path_); }
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

// Compilers of CUDA code that a build worker of a new spawner has.
std::vector<std::string> CudaCompilers() {
  auto spawner = SpawnerClient::Start(REGATTA_BIN_DIR "/regatta-spawner", {});
  EXPECT_TRUE(spawner.ok()) << spawner.status();
  if (!spawner.ok()) return {};
  BuildWorkerOptions options;
  options.program = REGATTA_BIN_DIR "/regatta-build-worker";
  BuildClient worker(options, *spawner);
  v1::BuildRequest request;
  request.mutable_reach();
  const auto reply = worker.Call(request, nullptr);
  EXPECT_TRUE(reply.ok()) << reply.status();
  std::vector<std::string> versions;
  if (!reply.ok()) return versions;
  for (const v1::KindReach& kind : reply->response.reach().kinds()) {
    if (kind.kind() == "cuda") versions.push_back(kind.compiler_version());
  }
  return versions;
}

TEST(WorkerEnvironment, AToolkitThatIsNamedReachesBuildWorkers) {
  const Toolkit toolkit;
  const Variable named("CUDA_PATH", toolkit.path());
  EXPECT_THAT(CudaCompilers(), Contains(EndsWith("/NVRTC 12.4")));
}

TEST(WorkerEnvironment, LibrariesOfAFolderThatIsNamedReachThem) {
  const Toolkit toolkit;
  // A folder that is none, and one that would be all, are passed over.
  const Variable named("LD_LIBRARY_PATH",
                       "/nowhere:" + toolkit.path() + "/lib64:/");
  EXPECT_THAT(CudaCompilers(), Contains(EndsWith("/NVRTC 12.4")));
}

absl::Status AskBehind(const std::vector<std::string>& prefix) {
  auto spawner = SpawnerClient::Start(REGATTA_BIN_DIR "/regatta-spawner", {});
  if (!spawner.ok()) return spawner.status();
  RunWorkerOptions options;
  options.program = REGATTA_BIN_DIR "/regatta-run-worker";
  options.exec_prefix = prefix;
  options.wall_limit_ms = 60'000;
  options.memory_bytes = int64_t{1} << 30;
  v1::RunRequest request;
  request.add_list_kinds("cpu");
  return AskRunWorker(options, *spawner, request).status();
}

TEST(WorkerEnvironment, AWorkerThatAloneIsEmulatedRefuses) {
#if defined(__x86_64__)
  const std::string emulator = "/usr/bin/qemu-x86_64";
#else
  const std::string emulator = "/usr/bin/qemu-aarch64";
#endif
  EXPECT_EQ(AskBehind({"/usr/bin/env", "LANG=C"}), absl::OkStatus());
  if (access(emulator.c_str(), X_OK) != 0) {
    GTEST_SKIP() << "no " << emulator << " here (install-packages --arm)";
  }
  EXPECT_THAT(std::string(AskBehind({emulator}).message()),
              AllOf(HasSubstr("qemu"),
                    HasSubstr("is an emulator and runs this worker, but not "
                              "the agent"),
                    HasSubstr("--exec-prefix")));
}

}  // namespace
}  // namespace regatta
