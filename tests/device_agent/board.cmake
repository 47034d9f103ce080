# Tests of the board's side: spawner, sandbox, workers, measuring, sensors.
add_executable(misbehaving_worker misbehaving_worker.cc)

# A build worker that plants faulty kernels. Each is compiled here and put into
# the program, so that a trial of it goes the way of every other.
file(GLOB planted_files CONFIGURE_DEPENDS
  ${CMAKE_CURRENT_SOURCE_DIR}/planted/*.c)
set(planted_assembly "")
set(planted_table "")
set(planted_objects)
find_package(Threads REQUIRED)
foreach(file ${planted_files})
  get_filename_component(name ${file} NAME_WE)
  add_library(planted_${name} MODULE ${file})
  # As the compiler's own modules: nothing but libc. A stack overflow stays one.
  target_compile_options(planted_${name} PRIVATE -O1 -fno-sanitize=all
    -fno-optimize-sibling-calls -Wno-infinite-recursion)
  target_link_options(planted_${name} PRIVATE -fno-sanitize=all)
  string(APPEND planted_assembly
    "__asm__(\".section .rodata\\n.balign 16\\n.global planted_${name}\\n\"\n"
    "        \"planted_${name}: .incbin \\\"$<TARGET_FILE:planted_${name}>\\\"\\n\"\n"
    "        \".global planted_${name}_end\\nplanted_${name}_end:\\n.previous\");\n"
    "extern \"C\" const char planted_${name}[], planted_${name}_end[];\n")
  string(APPEND planted_table
    "      {\"${name}\", planted_${name}, planted_${name}_end},\n")
  list(APPEND planted_objects planted_${name})
endforeach()
file(GENERATE OUTPUT ${CMAKE_CURRENT_BINARY_DIR}/planted_code.cc CONTENT
"#include \"tests/device_agent/planted_code.h\"
${planted_assembly}
namespace regatta {

std::optional<std::string> PlantedCode(std::string_view name) {
  struct Planted {
    std::string_view name;
    const char* begin;
    const char* end;
  };
  static const Planted kPlanted[] = {
${planted_table}  };
  for (const Planted& planted : kPlanted) {
    if (planted.name == name) return std::string(planted.begin, planted.end);
  }
  return std::nullopt;
}

}  // namespace regatta
")
set_source_files_properties(${CMAKE_CURRENT_BINARY_DIR}/planted_code.cc
  PROPERTIES OBJECT_DEPENDS "${planted_objects}")
add_executable(regatta-build-worker-planted
  cuda_ptx.cc planted_build_worker.cc planted_device.cc
  ${CMAKE_CURRENT_BINARY_DIR}/planted_code.cc)
target_link_libraries(regatta-build-worker-planted PRIVATE regatta_build)
add_dependencies(regatta-build-worker-planted ${planted_objects})

regatta_test(board_test
  block_timer_test.cc board_lacks_test.cc cgroup_test.cc clean_timing_test.cc
  core_locks_test.cc frame_channel_test.cc
  heartbeat_load_test.cc measure_parts_test.cc measuring_session_test.cc
  planted_faults_test.cc planted_list.cc scratch_folder_test.cc
  sensor_contract_test.cc spawner_test.cc
  trial_runner_test.cc utf8_texts_test.cc verify_test.cc worker_environment_test.cc
  LIBS regatta_agent_loop regatta_measure regatta_build regatta_run regatta_base)
target_compile_definitions(board_test PRIVATE
  REGATTA_BIN_DIR="${CMAKE_RUNTIME_OUTPUT_DIRECTORY}")
# Stands where a toolkit of CUDA 12 would have its compiler.
set_source_files_properties(worker_environment_test.cc PROPERTIES
  COMPILE_DEFINITIONS "REGATTA_FAKE_NVRTC=\"$<TARGET_FILE:fake_nvrtc>\"")
add_dependencies(board_test fake_nvrtc misbehaving_worker regatta-spawner
  regatta-build-worker regatta-build-worker-planted regatta-run-worker)

# Against a whole agent.
regatta_test(hostile_test hostile_soak_test.cc planted_list.cc
  ${CMAKE_SOURCE_DIR}/tests/support/process.cc
  LIBS regatta_agent_client regatta_measure regatta_build regatta_base
  LABEL soak TIMEOUT 3600)
target_compile_definitions(hostile_test PRIVATE
  REGATTA_BIN_DIR="${CMAKE_RUNTIME_OUTPUT_DIRECTORY}")
add_dependencies(hostile_test regatta-agent regatta-spawner
  regatta-build-worker-planted regatta-run-worker)

regatta_test(remote_build_test
  remote/builder_key_test.cc remote/description_watch_test.cc
  remote/order_session_test.cc remote/orders_test.cc
  remote/processor_target_test.cc
  remote/remote_board_test.cc
  LIBS regatta_agent_devices regatta_agent_remote regatta_build regatta_measure regatta_run
       regatta_base)
target_compile_definitions(remote_build_test PRIVATE
  REGATTA_BIN_DIR="${CMAKE_RUNTIME_OUTPUT_DIRECTORY}")
add_dependencies(remote_build_test regatta-spawner regatta-build-worker
  regatta-run-worker)

# Drivers that go wrong. The loader is found by LD_LIBRARY_PATH; what the other
# has not is the simulated driver's.
add_library(fake_opencl MODULE fake_opencl.c)
set_target_properties(fake_opencl PROPERTIES PREFIX "" OUTPUT_NAME libOpenCL
  SUFFIX .so.1
  LIBRARY_OUTPUT_DIRECTORY ${CMAKE_CURRENT_BINARY_DIR}/fake_opencl)
add_library(faulty_cuda MODULE faulty_cuda.c)
target_link_libraries(faulty_cuda PRIVATE -Wl,--no-as-needed regatta-cuda-sim
  ${CMAKE_DL_LIBS})
foreach(library fake_opencl faulty_cuda)
  target_compile_options(${library} PRIVATE -fno-sanitize=all)
  target_link_options(${library} PRIVATE -fno-sanitize=all)
endforeach()

regatta_test(opencl_test opencl_driver_test.cc opencl_limits_test.cc
  opencl_provider_test.cc ${CMAKE_SOURCE_DIR}/tests/support/process.cc
  LIBS regatta_agent_devices regatta_build regatta_measure regatta_run
       regatta_base)
target_compile_definitions(opencl_test PRIVATE
  REGATTA_FAKE_OPENCL="${CMAKE_CURRENT_BINARY_DIR}/fake_opencl"
  REGATTA_PLANTED_LIBRARY="$<TARGET_FILE:planted_honest>")
add_dependencies(opencl_test fake_opencl planted_honest)

# What all kinds of devices hold. Needs an OpenCL device, PoCL is one on any
# processor; CUDA is the simulated driver's.
regatta_test(device_contract_test
  cuda_ptx.cc device_contract/cuda_kind.cc device_contract/device_kind_list.cc
  device_contract/opencl_kind.cc
  device_contract/runtime_contract_test.cc
  device_contract/trials_contract_test.cc
  LIBS regatta_agent_devices regatta_build regatta_measure regatta_run
       regatta_base TIMEOUT 300)

# Over the simulated driver: no GPU and nothing of CUDA is needed.
regatta_test(cuda_test cuda_driver_test.cc cuda_ptx.cc cuda_runtime_test.cc cuda_sim_test.cc
  cuda_trials_test.cc device_contract/cuda_kind.cc worker_pool_test.cc
  ${CMAKE_SOURCE_DIR}/tests/support/process.cc
  LIBS regatta_agent_devices regatta_build regatta_measure regatta_run
       regatta_cuda_sim_parts regatta_base)
target_compile_definitions(cuda_test PRIVATE
  REGATTA_FAULTY_CUDA="$<TARGET_FILE:faulty_cuda>")
add_dependencies(cuda_test faulty_cuda)
foreach(test cuda_test device_contract_test)
  target_compile_definitions(${test} PRIVATE
    REGATTA_BIN_DIR="${CMAKE_RUNTIME_OUTPUT_DIRECTORY}"
    REGATTA_LIB_DIR="${CMAKE_BINARY_DIR}/lib")
  add_dependencies(${test} regatta-cuda-sim regatta-spawner
    regatta-build-worker-planted regatta-run-worker)
endforeach()
