# What `regatta compile` writes for devices, made into programs. Runs on an
# OpenCL device (PoCL is one on any processor) and on a CUDA driver.
regatta_test(compiler_launcher_test
  codegen_support.cc
  device_support.cc
  launcher_cuda_test.cc
  launcher_opencl_test.cc
  launcher_program.cc
  launcher_text_test.cc
  module_support.cc
  ../support/process.cc
  LIBS regatta_compiler regatta_codegen regatta_launcher regatta_run
  TIMEOUT 300)
target_compile_definitions(compiler_launcher_test PRIVATE
  "REGATTA_C_COMPILER=\"${CMAKE_C_COMPILER}\""
  "REGATTA_CXX_COMPILER=\"${CMAKE_CXX_COMPILER}\""
  "REGATTA_CUDA_SIM_DRIVER=\"$<TARGET_FILE:regatta-cuda-sim>\"")
add_dependencies(compiler_launcher_test regatta-cuda-sim)
