# The board's side of a trial: spawner, sandbox, workers, measuring.
find_library(SECCOMP_LIBRARY seccomp REQUIRED)

# What every program of a board speaks: frames, memory files, CPU lists.
add_library(regatta_board_io STATIC
  spawner/cgroup_places.cc spawner/cpu_list.cc spawner/file_text.cc
  spawner/frame_channel.cc spawner/process_tree.cc spawner/run_delay.cc)
target_link_libraries(regatta_board_io PUBLIC
  regatta_base protobuf::libprotobuf absl::status absl::statusor absl::strings)

add_library(regatta_sandbox STATIC
  sandbox/cgroup.cc sandbox/landlock.cc sandbox/sandbox.cc
  sandbox/scratch_folder.cc sandbox/seccomp_filter.cc)
target_link_libraries(regatta_sandbox PUBLIC
  regatta_board_io PRIVATE regatta_emulator ${SECCOMP_LIBRARY})

add_executable(regatta-spawner
  spawner/main.cc spawner/spawner.cc spawner/worker.cc)
target_link_libraries(regatta-spawner PRIVATE
  regatta_proto regatta_sandbox CLI11::CLI11)

# Inputs, references and comparing; loads no code.
add_library(regatta_verify STATIC
  verify/guard_bytes.cc verify/guarded_memory.cc verify/input_data.cc verify/output_check.cc
  verify/reference_file.cc)
target_link_libraries(regatta_verify PUBLIC
  regatta_module regatta_board_io absl::str_format)

# No LLVM and no expressions: it must start in milliseconds.
add_library(regatta_run STATIC
  run/block_timer.cc run/cache_eviction.cc run/crash_report.cc
  run/cuda_api.cc run/cuda_device.cc run/cuda_errors.cc run/cuda_memory.cc
  run/cuda_module.cc run/cuda_probe.cc run/cuda_runtime.cc
  run/device_time.cc
  run/host_probe.cc run/host_runtime.cc run/instruction_clock.cc
  run/launch_shape.cc run/module_runtime.cc run/opencl_api.cc
  run/opencl_device.cc run/opencl_errors.cc run/opencl_limits.cc run/opencl_memory.cc
  run/opencl_probe.cc run/opencl_runtime.cc run/probe_kernel.cc
  run/run_session.cc run/runtime_list.cc)
target_link_libraries(regatta_run PUBLIC
  regatta_proto regatta_verify regatta_sandbox regatta_noise_floor
  regatta_probe_kernels
  ${CMAKE_DL_LIBS})
add_executable(regatta-run-worker run/main.cc)
target_link_libraries(regatta-run-worker PRIVATE regatta_run regatta_emulator)
# One starts for every trial, while the device waits: forty shared libraries take
# the dynamic linker 6 ms, what is linked in takes 1 ms. Static archives first:
# lld resolves from them whatever stands behind, and drops the shared ones.
find_library(PROTOBUF_ARCHIVE libprotobuf.a)
find_library(CRYPTO_ARCHIVE libcrypto.a)
find_library(SECCOMP_ARCHIVE libseccomp.a)
find_library(Z_ARCHIVE libz.a)
if(PROTOBUF_ARCHIVE AND CRYPTO_ARCHIVE AND SECCOMP_ARCHIVE AND Z_ARCHIVE)
  get_filename_component(archive_folder ${PROTOBUF_ARCHIVE} DIRECTORY)
  file(GLOB absl_archives ${archive_folder}/libabsl_*.a)
  target_link_options(regatta-run-worker PRIVATE
    -Wl,--as-needed -static-libstdc++ -static-libgcc
    ${PROTOBUF_ARCHIVE} ${absl_archives} ${CRYPTO_ARCHIVE} ${SECCOMP_ARCHIVE}
    ${Z_ARCHIVE})
else()
  message(STATUS "regatta-run-worker is linked dynamically: it starts slower")
endif()

# For QEMU, on this machine, whatever processor it plays.
if(NOT CMAKE_CROSSCOMPILING)
  add_library(regatta-instruction-count MODULE emulator/instruction_count.c)
  set_target_properties(regatta-instruction-count PROPERTIES
    PREFIX "" LIBRARY_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/lib)
  target_compile_options(regatta-instruction-count PRIVATE
    -fvisibility=hidden -fno-sanitize=all)
  target_link_options(regatta-instruction-count PRIVATE -fno-sanitize=all)
endif()

# CUDA's driver library over simulated GPUs; stands alone, as a driver does.
if(REGATTA_COMPILER)
  add_library(regatta_cuda_sim_parts STATIC
    cuda_sim/code_module.cc cuda_sim/gpu_list.cc cuda_sim/launch_memo.cc
    cuda_sim/simulated_context.cc)
  target_link_libraries(regatta_cuda_sim_parts PUBLIC regatta_ptxsim absl::hash)
  add_library(regatta-cuda-sim SHARED cuda_sim/driver.cc)
  target_link_libraries(regatta-cuda-sim PRIVATE regatta_cuda_sim_parts)
  target_link_options(regatta-cuda-sim PRIVATE
    -Wl,--version-script=${CMAKE_CURRENT_SOURCE_DIR}/cuda_sim/exports.map)
  set_target_properties(regatta-cuda-sim PROPERTIES
    LIBRARY_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/lib
    LINK_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/cuda_sim/exports.map)
endif()

# The board's only user of the compiler.
if(REGATTA_COMPILER)
  add_library(regatta_build STATIC
    build/build_server.cc build/compiler_module_source.cc
    build/device_target.cc build/processor_target.cc build/workload_facts.cc)
  target_link_libraries(regatta_build PUBLIC
    regatta_compiler regatta_proto regatta_verify)
  add_executable(regatta-build-worker build/main.cc)
  target_link_libraries(regatta-build-worker PRIVATE regatta_build regatta_emulator)
endif()

add_library(regatta_sensors STATIC
  sensors/busy_sensor.cc sensors/frequency_sensor.cc sensors/load_sensor.cc sensors/number_file.cc
  sensors/sensor_list.cc sensors/sensor_set.cc sensors/temperature_sensor.cc
  sensors/throttle_sensor.cc)
target_link_libraries(regatta_sensors PUBLIC
  regatta_proto absl::status absl::statusor absl::strings)

# The agent's side; no compiler in it.
add_library(regatta_measure STATIC
  measure/batch.cc measure/board_facts.cc measure/build_client.cc measure/build_worker.cc
  measure/builder.cc measure/core_locks.cc measure/device_executor.cc
  measure/driver_question.cc
  measure/duplicate_index.cc measure/host_reference.cc
  measure/measuring_session.cc measure/reference_store.cc measure/run_client.cc
  measure/trial_runner.cc measure/trial_timer.cc measure/worker_ending.cc
  measure/worker_pool.cc
  spawner/spawner_client.cc)
target_compile_definitions(regatta_measure PRIVATE
  REGATTA_VERSION="${PROJECT_VERSION}")
target_link_libraries(regatta_measure PUBLIC
  regatta_proto regatta_board_io regatta_agent_probe regatta_sensors
  regatta_base absl::str_format)
