# SPDX-License-Identifier: Apache-2.0
# Installs the build in BUILD into a separate folder and moves it; then builds, runs and tests examples/project with it
# and without the source tree, once through CMake, and a program through pkg-config; and unpacks the Debian package.
# With IKAT_BLESS=1 in the environment the project's golden files are approved.
cmake_minimum_required(VERSION 3.25)
set(scratch ${BUILD}/package_test)
set(prefix ${scratch}/moved)
file(REMOVE_RECURSE ${scratch})
file(MAKE_DIRECTORY ${scratch})

function(run)
  execute_process(COMMAND ${ARGV} RESULT_VARIABLE status OUTPUT_VARIABLE output ERROR_VARIABLE output)
  if(NOT status EQUAL 0)
    list(JOIN ARGV " " command)
    message(FATAL_ERROR "${command}\nends with ${status}:\n${output}")
  endif()
  set(output "${output}" PARENT_SCOPE)
endfunction()

function(expect text)
  string(FIND "${output}" "${text}" at)
  if(at EQUAL -1)
    message(FATAL_ERROR "'${text}' is missing in:\n${output}")
  endif()
endfunction()

# A component alone; and what has not been built is an error that says so.
run(${CMAKE_COMMAND} --install ${BUILD} --prefix ${scratch}/parts --component cli)
file(GLOB_RECURSE parts RELATIVE ${scratch}/parts ${scratch}/parts/*)
if(NOT parts STREQUAL "bin/ikat")
  message(FATAL_ERROR "the component cli is ${parts}, not bin/ikat")
endif()
set(embed ${BUILD}/tools/embed/libikat_embed.a)  # which no other test uses
file(RENAME ${embed} ${embed}.away)
execute_process(COMMAND ${CMAKE_COMMAND} --install ${BUILD} --prefix ${scratch}/parts
  RESULT_VARIABLE status OUTPUT_QUIET ERROR_VARIABLE output)
file(RENAME ${embed}.away ${embed})
expect("ikat_embed has not been built: cmake --build")
if(status EQUAL 0)
  message(FATAL_ERROR "what has not been built was installed")
endif()
run(${CMAKE_COMMAND} --install ${BUILD} --prefix ${scratch}/parts --component core)
file(COPY ${SOURCE}/examples/row_sum.cpp DESTINATION ${scratch}/alone)
file(WRITE ${scratch}/alone/CMakeLists.txt "cmake_minimum_required(VERSION 3.25)\nproject(alone CXX)\nfind_package(ikat REQUIRED)\n\
add_library(alone OBJECT row_sum.cpp)\ntarget_link_libraries(alone PRIVATE ikat::ikat)\n")
run(${CMAKE_COMMAND} -S ${scratch}/alone -B ${scratch}/alone/build -DCMAKE_PREFIX_PATH=${scratch}/parts -DCMAKE_CXX_COMPILER=${COMPILER})

# Files of tensors: the library that reads them needs no JSON library of its users.
file(WRITE ${scratch}/tensors/tensors.cpp "#include <cstdio>\n#include <ikat/safetensors.hpp>\nusing namespace ikat;\n\
int main() {\n    safetensors::write(\"w\", {{safetensors::tensor(\"w\", {1}, std::vector<float>{1.5f})}});\n\
    std::printf(\"w is %g\", safetensors::floats(safetensors::read(\"w\").at(\"w\"))[0]);\n}\n")
file(WRITE ${scratch}/tensors/CMakeLists.txt "cmake_minimum_required(VERSION 3.25)\nproject(tensors CXX)\nfind_package(ikat REQUIRED)\n\
add_executable(tensors tensors.cpp)\ntarget_link_libraries(tensors PRIVATE ikat::safetensors)\n")
run(${CMAKE_COMMAND} -S ${scratch}/tensors -B ${scratch}/tensors/build -DCMAKE_PREFIX_PATH=${scratch}/parts -DCMAKE_BUILD_TYPE=Debug
  -DCMAKE_CXX_COMPILER=${COMPILER} -DCMAKE_CXX_COMPILER_LAUNCHER=${LAUNCHER} "-DCMAKE_CXX_FLAGS_DEBUG=${FLAGS}")
run(${CMAKE_COMMAND} --build ${scratch}/tensors/build)
run(${CMAKE_COMMAND} -E chdir ${scratch}/tensors/build ./tensors)
expect("w is 1.5")

# The compiler alone: neither the runtime nor the kernels are linked.
file(WRITE ${scratch}/compiler/compiler.cpp "#include <cstdio>\n#include <ikat/compile.hpp>\n#include <ikat/dsl.hpp>\nusing namespace ikat;\n\
int main() {\n    const auto twice = kernel(\"twice\", params(\"x\"), [](InOut<float> x) { x[global_id().x] *= 2; });\n\
    std::puts(compile(twice.ast()).ptx.c_str());\n}\n")
file(WRITE ${scratch}/compiler/CMakeLists.txt "cmake_minimum_required(VERSION 3.25)\nproject(compiler CXX)\nfind_package(ikat REQUIRED)\n\
add_executable(compiler compiler.cpp)\ntarget_link_libraries(compiler PRIVATE ikat::core)\n")
run(${CMAKE_COMMAND} -S ${scratch}/compiler -B ${scratch}/compiler/build -DCMAKE_PREFIX_PATH=${scratch}/parts -DCMAKE_BUILD_TYPE=Debug
  -DCMAKE_CXX_COMPILER=${COMPILER} -DCMAKE_CXX_COMPILER_LAUNCHER=${LAUNCHER} "-DCMAKE_CXX_FLAGS_DEBUG=${FLAGS}")
run(${CMAKE_COMMAND} --build ${scratch}/compiler/build)
run(${scratch}/compiler/build/compiler)
expect(".visible .entry twice(")

run(${CMAKE_COMMAND} --install ${BUILD} --prefix ${scratch}/installed)
file(RENAME ${scratch}/installed ${prefix})

# The command prints the project's version.
run(${prefix}/bin/ikat --version)
expect("ikat ${VERSION}")
run(${prefix}/bin/ikat emit saxpy)
expect(".visible .entry saxpy")

# The stand-in for NVIDIA's driver, in its own folder.
file(GLOB driver ${prefix}/lib*/ikat/cuda_driver/libcuda.so.1 ${prefix}/lib/*/ikat/cuda_driver/libcuda.so.1)
run(${CMAKE_COMMAND} -E env IKAT_DEVICE=cuda IKAT_CUDA_DRIVER=${driver} ${prefix}/bin/ikat run saxpy
  f32:2 f32[]:1,2,3 f32[]:10,10,10=>- u32:3)
expect("16")

# One name in the include path, and no header that refers to the source tree.
file(GLOB top RELATIVE ${prefix}/include ${prefix}/include/*)
if(NOT top STREQUAL "ikat")
  message(FATAL_ERROR "the include folder holds ${top}, not ikat alone")
endif()

# The example, as a separate project.
file(COPY ${SOURCE}/examples/project DESTINATION ${scratch})
run(${CMAKE_COMMAND} -S ${scratch}/project -B ${scratch}/build -DCMAKE_PREFIX_PATH=${prefix} -DCMAKE_BUILD_TYPE=Debug
  -DCMAKE_CXX_COMPILER=${COMPILER} -DCMAKE_CXX_COMPILER_LAUNCHER=${LAUNCHER} "-DCMAKE_CXX_FLAGS_DEBUG=${FLAGS}")
run(${CMAKE_COMMAND} --build ${scratch}/build -j 2)
run(${CMAKE_CTEST_COMMAND} --test-dir ${scratch}/build --output-on-failure)
expect("100% tests passed, 0 tests failed out of 2")

if("$ENV{IKAT_BLESS}")
  file(COPY ${scratch}/project/golden DESTINATION ${SOURCE}/examples/project)
endif()

# Without CMake.
find_program(pkg_config pkg-config)
if(pkg_config)
  file(GLOB_RECURSE file ${prefix}/ikat.pc)
  cmake_path(GET file PARENT_PATH folder)
  set(ENV{PKG_CONFIG_PATH} ${folder})
  run(${pkg_config} --modversion ikat)
  expect("${VERSION}")
  run(${pkg_config} --static --cflags --libs ikat)
  separate_arguments(flags UNIX_COMMAND "${output}")
  separate_arguments(debug UNIX_COMMAND "${FLAGS}")
  run(${LAUNCHER} ${COMPILER} ${debug} -c ${SOURCE}/examples/row_sum.cpp -o ${scratch}/row_sum.o ${flags})
  cmake_path(GET folder PARENT_PATH libraries)
  run(${COMPILER} ${debug} ${scratch}/row_sum.o -o ${scratch}/row_sum ${flags} -Wl,-rpath,${libraries})
  run(${LAUNCHER} ${COMPILER} ${debug} -fsyntax-only ${SOURCE}/examples/batch.cpp ${flags})  # which includes a list
  run(${scratch}/row_sum)
  expect("1000\n1000\n1000\n1000\n1000\n")
endif()

# The Debian package, unpacked.
find_program(dpkg_deb dpkg-deb)
if(dpkg_deb)
  cmake_path(GET CMAKE_COMMAND PARENT_PATH programs)
  run(${programs}/cpack --config ${BUILD}/CPackConfig.cmake -G DEB -B ${scratch}/deb)
  file(GLOB deb ${scratch}/deb/ikat_${VERSION}_*.deb)
  run(${dpkg_deb} -f ${deb} Version)
  expect("${VERSION}")
  run(${dpkg_deb} -x ${deb} ${scratch}/unpacked)
  run(${scratch}/unpacked/usr/bin/ikat --version)
  expect("ikat ${VERSION}")
  if(NOT EXISTS ${scratch}/unpacked/usr/include/ikat/ikat.hpp)
    message(FATAL_ERROR "the Debian package has no headers")
  endif()
endif()
file(REMOVE_RECURSE ${scratch})
