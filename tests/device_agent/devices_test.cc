// Which devices an agent serves, from what workers say of its board.
#include "device_agent/devices/provider_list.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace regatta {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

class FakeBuildWorker : public BuildWorkerInfo {
 public:
  absl::StatusOr<v1::Description> Describe(
      const v1::DescribeRequest& request) override {
    if (!status_.ok()) return status_;
    if (request.device().architecture() == unknown_architecture_) {
      return absl::InvalidArgumentError("unknown architecture");
    }
    v1::Description description;
    description.set_target(request.device().kind() + ",max_group=" +
                           std::to_string(request.device().max_group()));
    description.set_compiler_version("c2");
    description.set_space(request.device().kind());
    description.set_space_version(5);
    return description;
  }
  absl::Status status_;
  std::string unknown_architecture_ = "none";
};

class FakeRunWorker : public RunWorkerInfo {
 public:
  absl::StatusOr<v1::RunResponse> Ask(const v1::RunRequest& request,
                                      const DriverNeeds& needs,
                                      const std::string& cpu_list) override {
    const bool host =
        request.probe_kind() == "cpu" ||
        (request.list_kinds_size() > 0 && request.list_kinds(0) == "cpu");
    EXPECT_NE(needs.driver, host);
    EXPECT_NE(needs.scratch_bytes > 0, host);
    needs_ = needs;
    cpu_list_ = cpu_list;
    request_ = request;
    if (!status_.ok()) return status_;
    return response_;
  }
  v1::RunRequest request_;
  DriverNeeds needs_;
  std::string cpu_list_;
  absl::Status status_;
  v1::RunResponse response_;
};

class DevicesTest : public ::testing::Test {
 protected:
  DevicesTest() {
    board_.agent_id = "lab-1";
    board_.machine.memory_bytes = 1 << 30;
    board_.machine.marketing_name = "EPYC";
    board_.cpus = {2, 3};
    board_.host.set_target("cpu,triple=x86_64-linux-gnu,mcpu=znver4");
    board_.host.set_device_class("znver4-2c");
    board_.credit = 3;
    board_.build_worker = &build_;
    board_.run_worker = &run_;
  }
  void AddBoardDevice(const std::string& name, bool on_host) {
    v1::BoardDevice& device = *run_.response_.mutable_devices()->add_devices();
    device.set_kind("opencl");
    device.set_selector(
        "0/" + std::to_string(run_.response_.devices().devices_size() - 1));
    device.set_platform("Portable Computing Language");
    device.set_name(name);
    device.set_driver_version("OpenCL 3.0, driver 3.1");
    device.set_compute_units(16);
    device.set_on_host_cores(on_host);
    device.set_max_group(256);
    device.set_memory_bytes(1 << 20);
  }
  void AddCudaDevice(const std::string& name, const std::string& architecture,
                     bool simulated = false) {
    v1::DeviceList& list = *run_.response_.mutable_devices();
    v1::BoardDevice& device = *list.add_devices();
    device.set_kind("cuda");
    device.set_selector(std::to_string(list.devices_size() - 1));
    device.set_platform("CUDA");
    device.set_name(name);
    device.set_architecture(architecture);
    device.set_driver_version("driver of CUDA 13.0");
    device.set_compute_units(132);
    device.set_max_group(1024);
    device.set_simulated(simulated);
  }
  absl::StatusOr<std::vector<FoundDevice>> Find(std::string_view kinds) {
    const auto providers = ChooseProviders(kinds);
    EXPECT_TRUE(providers.ok()) << providers.status();
    return FindDevices(*providers, board_);
  }

  FakeBuildWorker build_;
  FakeRunWorker run_;
  Board board_;
};

TEST_F(DevicesTest, TheProcessorsAreOneDeviceNamedAsTheAgent) {
  const auto found = Find("cpu");
  ASSERT_TRUE(found.ok()) << found.status();
  ASSERT_EQ(found->size(), 1u);
  EXPECT_TRUE(found->front().served.on_host());
  EXPECT_FALSE(found->front().served.needs.driver);
  const v1::DeviceInfo& device = found->front().served.info;
  EXPECT_EQ(device.device_id(), "lab-1");
  EXPECT_EQ(device.device_class(), "znver4-2c");
  EXPECT_EQ(device.target(), "cpu,triple=x86_64-linux-gnu,mcpu=znver4");
  EXPECT_EQ(device.cpu_list(), "2-3");
  EXPECT_EQ(device.cores(), 2);
  EXPECT_EQ(device.memory_bytes(), 1 << 30);
  EXPECT_EQ(device.health(), "probing");
  EXPECT_EQ(device.peak_flops_per_s(), 0);
  EXPECT_FALSE(device.has_noise_floor());
  EXPECT_EQ(device.credit(), 3);
  EXPECT_FALSE(device.simulated());
  EXPECT_EQ(device.compiler_version(), "");  // the Hello's
}

TEST_F(DevicesTest, AFlagNamesTheClassOfTheProcessors) {
  board_.device_class = "my-class";
  EXPECT_EQ(Find("cpu")->front().served.info.device_class(), "my-class");
  board_.device_class = "";
  board_.host.clear_device_class();
  EXPECT_THAT(std::string(Find("cpu").status().message()),
              HasSubstr("--device-class"));
}

TEST_F(DevicesTest, EveryDeviceOfEveryKindIsServedInOrder) {
  AddBoardDevice("pthread-EPYC", /*on_host=*/true);
  AddBoardDevice("Big GPU", /*on_host=*/false);
  const auto found = Find("opencl, cpu");
  ASSERT_TRUE(found.ok()) << found.status();
  ASSERT_EQ(found->size(), 3u);
  const ServedDevice& pocl = (*found)[0].served;
  const ServedDevice& gpu = (*found)[1].served;
  EXPECT_EQ((*found)[2].served.info.device_id(), "lab-1");
  EXPECT_THAT(run_.request_.list_kinds(), ElementsAre("opencl"));
  EXPECT_EQ(run_.cpu_list_, "2-3");

  EXPECT_EQ(pocl.info.device_id(), "lab-1-opencl0");
  EXPECT_EQ(pocl.info.device_class(), "opencl-pocl-znver4-2c");
  EXPECT_EQ(pocl.info.cpu_list(), "2-3");
  EXPECT_TRUE(pocl.needs.all_cores);
  EXPECT_EQ(pocl.board.selector(), "0/0");
  EXPECT_EQ(gpu.info.device_id(), "lab-1-opencl0.1");
  EXPECT_EQ(gpu.info.device_class(), "opencl-big-gpu-16cu");
  EXPECT_FALSE(gpu.needs.all_cores);
  EXPECT_EQ(gpu.board.selector(), "0/1");
  for (const ServedDevice* device : {&pocl, &gpu}) {
    EXPECT_TRUE(device->needs.driver);
    EXPECT_EQ(device->info.target(), "opencl,max_group=256");
    EXPECT_EQ(device->info.compiler_version(), "c2");
    EXPECT_EQ(device->info.space(), "opencl");
    EXPECT_EQ(device->info.space_version(), 5);
    EXPECT_EQ(device->info.cores(), 1);
    EXPECT_EQ(device->info.credit(), 3);
    EXPECT_THAT(device->info.driver_version(), HasSubstr("OpenCL 3.0"));
  }
}

TEST_F(DevicesTest, CudaDevicesKeepTheirWorkersAndSimulatedOnesSayTheyAreSo) {
  board_.cuda_driver = "/opt/libcuda.so.1";
  AddCudaDevice("NVIDIA H200", "sm_90");
  AddCudaDevice("Simulated sm_80", "sm_80", /*simulated=*/true);
  const auto found = Find("cuda");
  ASSERT_TRUE(found.ok()) << found.status();
  ASSERT_EQ(found->size(), 2u);
  EXPECT_THAT(run_.request_.list_kinds(), ElementsAre("cuda"));
  EXPECT_THAT(run_.needs_.arguments,
              ElementsAre("--cuda-driver", "/opt/libcuda.so.1"));
  EXPECT_TRUE(run_.needs_.keep_worker);
  EXPECT_TRUE(run_.needs_.reserves_addresses);
  const v1::DeviceInfo& real = (*found)[0].served.info;
  EXPECT_EQ(real.device_id(), "lab-1-cuda0");
  EXPECT_EQ(real.device_class(), "cuda-nvidia-h200-132sm");
  EXPECT_FALSE(real.simulated());
  EXPECT_EQ(real.driver_version(), "CUDA, driver of CUDA 13.0");
  const v1::DeviceInfo& simulated = (*found)[1].served.info;
  EXPECT_EQ(simulated.device_id(), "simulated-lab-1-cuda1");
  EXPECT_EQ(simulated.device_class(), "simulated-cuda-sm_80");
  EXPECT_TRUE(simulated.simulated());
  // Every run of other kinds is a worker of its own.
  run_ = FakeRunWorker();
  AddBoardDevice("Big GPU", /*on_host=*/false);
  EXPECT_FALSE(Find("opencl")->front().served.needs.keep_worker);
  EXPECT_FALSE(Find("cpu")->front().served.needs.keep_worker);
}

TEST_F(DevicesTest, ACudaDeviceThatNobodyBuildsForLeavesTheOthers) {
  AddCudaDevice("NVIDIA Titan V", "sm_70");
  AddCudaDevice("NVIDIA H200", "sm_90");
  build_.unknown_architecture_ = "sm_70";
  const auto found = Find("cuda");
  ASSERT_TRUE(found.ok()) << found.status();
  ASSERT_EQ(found->size(), 1u);
  EXPECT_EQ(found->front().served.info.device_id(), "lab-1-cuda1");
  build_.status_ = absl::UnavailableError("no NVRTC: install one");
  EXPECT_THAT(std::string(Find("cuda").status().message()),
              HasSubstr("no NVRTC: install one"));
}

TEST_F(DevicesTest, AnOpenClDeviceThatNobodyBuildsForLeavesTheOthers) {
  AddBoardDevice("Odd GPU", /*on_host=*/false);
  AddBoardDevice("Big GPU", /*on_host=*/false);
  run_.response_.mutable_devices()->mutable_devices(0)->set_architecture("odd");
  build_.unknown_architecture_ = "odd";
  const auto found = Find("opencl");
  ASSERT_TRUE(found.ok()) << found.status();
  ASSERT_EQ(found->size(), 1u);
  // As it is called beside the other.
  EXPECT_EQ(found->front().served.info.device_id(), "lab-1-opencl0.1");
}

TEST_F(DevicesTest, ADriverThatFailsLeavesTheDevicesOfOthersAsTheyAre) {
  AddBoardDevice("Big GPU", /*on_host=*/false);
  v1::DeviceList& list = *run_.response_.mutable_devices();
  list.mutable_devices(0)->set_selector("1/0");
  list.add_errors("opencl: platform 0 (Torn): CL_OUT_OF_HOST_MEMORY (-6)");
  ::testing::internal::CaptureStderr();
  const auto found = Find("opencl");
  EXPECT_THAT(::testing::internal::GetCapturedStderr(),
              HasSubstr("platform 0 (Torn): CL_OUT_OF_HOST_MEMORY"));
  ASSERT_TRUE(found.ok()) << found.status();
  ASSERT_EQ(found->size(), 1u);
  EXPECT_EQ(found->front().served.info.device_id(), "lab-1-opencl1");
}

TEST_F(DevicesTest, WhateverGoesThroughNvidiasDriverGetsItsFiles) {
  AddBoardDevice("Big GPU", /*on_host=*/false);
  Find("opencl").IgnoreError();
  EXPECT_THAT(run_.needs_.writable,
              ::testing::IsSupersetOf({"/dev/dri", "/dev/nvidiactl",
                                       "/dev/nvidia15", "/dev/nvmap"}));
  run_ = FakeRunWorker();
  AddCudaDevice("NVIDIA H200", "sm_90");
  Find("cuda").IgnoreError();
  EXPECT_THAT(run_.needs_.writable,
              ::testing::IsSupersetOf(
                  {"/dev/nvidiactl", "/dev/nvidia15", "/dev/nvmap"}));
}

TEST_F(DevicesTest, AKindThatIsAbsentOrBrokenLeavesTheOthers) {
  EXPECT_EQ(Find("cpu,opencl")->size(), 1u);  // none here
  run_.response_.mutable_devices()->add_errors("opencl: the driver is torn");
  EXPECT_EQ(Find("cpu,opencl")->size(), 1u);
  run_.status_ = absl::InternalError("run worker: SIGSEGV");
  EXPECT_EQ(Find("cpu,opencl")->size(), 1u);
  run_ = FakeRunWorker();
  AddBoardDevice("Big GPU", /*on_host=*/false);
  build_.status_ = absl::UnavailableError("no code generator for opencl");
  EXPECT_EQ(Find("cpu,opencl")->size(), 1u);
}

TEST_F(DevicesTest, AnAgentWithNothingToServeSaysWhy) {
  const auto none = Find("opencl");
  EXPECT_EQ(none.status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(none.status().message()),
              HasSubstr("opencl: none here"));
  run_.response_.mutable_devices()->add_errors("opencl: the driver is torn");
  EXPECT_THAT(std::string(Find("opencl").status().message()),
              HasSubstr("the driver is torn"));
}

TEST_F(DevicesTest, OpenClIsProbedByARunWorkerUnderTheLocks) {
  AddBoardDevice("Big GPU", /*on_host=*/false);
  run_.response_.mutable_devices()->mutable_devices(0)->set_cache_bytes(4096);
  const FoundDevice device = Find("opencl")->front();
  run_.response_.mutable_probe()->set_peak_flops_per_s(2e12);
  run_.response_.mutable_probe()->set_bandwidth_bytes_per_s(3e11);
  run_.response_.mutable_probe()->set_noise_floor(0.02);
  CpuProbeOptions options;
  bool locked = false;
  options.exclusively = [&](const std::function<void()>& part) {
    locked = true;
    run_.request_.Clear();
    part();
    EXPECT_EQ(run_.request_.probe_kind(), "opencl");
    EXPECT_EQ(run_.request_.device(), "0/0");
    return absl::OkStatus();
  };
  const auto found = device.provider->Probe(board_, device.served, options);
  ASSERT_TRUE(found.ok()) << found.status();
  EXPECT_TRUE(locked);
  EXPECT_EQ(found->peak_flops_per_s, 2e12);
  EXPECT_EQ(found->bandwidth_bytes_per_s, 3e11);
  EXPECT_EQ(found->noise_floor, 0.02);
  EXPECT_EQ(found->caches.l3_bytes, 4096);
  options.exclusively = [](const std::function<void()>&) {
    return absl::CancelledError("stopping");
  };
  EXPECT_EQ(
      device.provider->Probe(board_, device.served, options).status().code(),
      absl::StatusCode::kCancelled);
}

class EmulatedDevicesTest : public DevicesTest {
 protected:
  EmulatedDevicesTest() {
    board_.emulator = "/usr/bin/qemu-aarch64";
    board_.cpus = {2};
    board_.host.set_device_class("cortex-a72-1c");
    answer_ = run_.response_.mutable_devices()->add_devices();
    answer_->set_kind("cpu");
  }
  v1::BoardDevice* answer_;
};

TEST_F(EmulatedDevicesTest, TheyAreSimulatedAndSayWhatTimesThem) {
  ServedDevice served = Find("cpu")->front().served;
  EXPECT_TRUE(served.info.simulated());
  EXPECT_FALSE(served.counted);
  EXPECT_EQ(served.info.device_class(), "simulated-cortex-a72-1c-wallclock");
  EXPECT_EQ(served.info.driver_version(), "/usr/bin/qemu-aarch64, wall clock");
  EXPECT_GT(served.needs.start_ms, 0);
  answer_->set_call_clock("instructions of 500 ps");
  served = Find("cpu")->front().served;
  EXPECT_TRUE(served.counted);
  EXPECT_EQ(served.info.device_class(), "simulated-cortex-a72-1c-instructions");
  EXPECT_EQ(served.info.driver_version(),
            "/usr/bin/qemu-aarch64, instructions of 500 ps");
  board_.device_class = "simulated-mine";
  EXPECT_EQ(Find("cpu")->front().served.info.device_class(), "simulated-mine");
}

TEST_F(EmulatedDevicesTest, ACountingOneHasOneProcessor) {
  answer_->set_call_clock("instructions of 1000 ps");
  board_.cpus = {2, 3};
  EXPECT_THAT(std::string(Find("cpu").status().message()),
              HasSubstr("give --cores with one"));
}

TEST_F(EmulatedDevicesTest, ACountingOneIsProbedByItsRunWorker) {
  answer_->set_call_clock("instructions of 1000 ps");
  const FoundDevice device = Find("cpu")->front();
  run_.response_.mutable_probe()->set_peak_flops_per_s(8e9);
  CpuProbeOptions options;
  options.exclusively = [](const std::function<void()>& part) {
    part();
    return absl::OkStatus();
  };
  const auto found = device.provider->Probe(board_, device.served, options);
  ASSERT_TRUE(found.ok()) << found.status();
  EXPECT_EQ(run_.request_.probe_kind(), "cpu");
  EXPECT_EQ(found->peak_flops_per_s, 8e9);
}

TEST_F(EmulatedDevicesTest, SoAreItsOtherDevices) {
  AddBoardDevice("Big GPU", /*on_host=*/false);
  run_.response_.mutable_devices()->mutable_devices()->DeleteSubrange(0, 1);
  const v1::DeviceInfo device = Find("opencl")->front().served.info;
  EXPECT_TRUE(device.simulated());
  EXPECT_EQ(device.device_class(), "simulated-opencl-big-gpu-16cu");
}

TEST(ChooseProvidersTest, UnknownRepeatedAndEmptyKindsAreRefused) {
  for (const char* bad : {"", "gpu", "cpu,", "cpu,cpu", "cpu,opencl,abacus"}) {
    const auto chosen = ChooseProviders(bad);
    EXPECT_EQ(chosen.status().code(), absl::StatusCode::kInvalidArgument)
        << bad;
    EXPECT_THAT(std::string(chosen.status().message()),
                HasSubstr("kinds are cpu, opencl, cuda"))
        << bad;
  }
}

}  // namespace
}  // namespace regatta
